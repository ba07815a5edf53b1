#!/bin/sh
# puppet-inspector @VERSION@ with its Python. What follows this script is unpacked once, and started from there:
# for root in /var/cache/puppet-inspector, for others in ~/.cache/puppet-inspector. To remove it, delete both.
set -eu
umask 022
fail() { printf 'puppet-inspector: %s\n  %s\n' "$1" "$2" >&2; exit 2; }

if [ "$(id -u)" -eq 0 ]; then
    # Not where HOME points: sudo may leave it to the user, who could then change what root executes.
    base=/var/cache/puppet-inspector
elif [ -n "${XDG_CACHE_HOME:-${HOME:-}}" ]; then
    base=${XDG_CACHE_HOME:-$HOME/.cache}/puppet-inspector
else
    fail 'HOME is not set, so there is no directory to unpack in.' 'Set HOME or XDG_CACHE_HOME.'
fi
program=$base/@VERSION@-@DIGEST@
if ! [ -f "$program/puppet-inspector" ]; then
    mkdir -p "$base" 2>/dev/null || fail "Cannot create $base." 'Check the permissions and the disk.'
    [ -O "$base" ] || fail "$base belongs to somebody else." 'Remove it, or set XDG_CACHE_HOME to a directory of yours.'
    new=$(mktemp -d "$base/new.XXXXXX") || fail "Cannot write in $base." 'Check the permissions and the disk.'
    trap 'rm -rf "$new"' EXIT
    trap 'exit 130' HUP INT TERM
    chmod 755 "$new"
    tail -n +@LINES@ -- "$0" | gzip -dc | tar -xf - -C "$new" ||
        fail "Cannot unpack in $base." 'Free 120 MB there, and check that this file is whole (SHA256SUMS).'
    # Another process may have been first.
    mv -T "$new" "$program" 2>/dev/null || [ -f "$program/puppet-inspector" ] || fail "Cannot write $program." 'Remove it.'
    trap - EXIT HUP INT TERM
    rm -rf "$new"
fi
[ -O "$program/puppet-inspector" ] || fail "$program belongs to somebody else." 'Remove it.'
[ -x "$program/puppet-inspector" ] ||
    fail "Programs in $base cannot be executed: is it mounted noexec?" 'Unpack elsewhere: install the .deb, or set XDG_CACHE_HOME (not for root).'
exec "$program/puppet-inspector" "$@"
