"""What a capture already shows of the next major version of Puppet or OpenVox: removals and changed defaults."""
