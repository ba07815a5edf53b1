"""Messages about plugins and facts, and about applying a catalog's resources."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, on_master, on_node

_W, _H = Visible.WIRE, Visible.HANDSHAKE

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            ("Could not evaluate: Could not retrieve information from environment X source(s) puppet:///modules/X"),
            "Could not retrieve information from environment X source(s)",
            "Could not retrieve information from source(s)",
            "Could not find file_metadata modules/X",
            "Could not find file_content",
        ),
        "The file of a `source` does not exist in that module and environment on the master that answered.",
        (
            "The path is wrong: `puppet:///modules/mod/a` is mod/files/a.",
            "The code is not deployed in this environment.",
            "With several compilers: this one has older code.",
        ),
        (
            on_master(
                "see which files the module has",
                'ls "$(puppet config print environmentpath --section master)"/<environment>/modules/<module>/files',
            ),
        ),
        (
            advice("deploy the code, or correct the `source`"),
            advice("compare the compilers' code", only_if="there are several"),
        ),
        ("F02", "S20"),
        _W,
    ),
    KnownError(
        (
            "Not authorized to call find on X",
            "Not authorized to call search on X",
            "Not authorized to call save on X",
            "Denying access: Forbidden request",
            "Denying find request for X on fileserver mount",
        ),
        "The master's file server or an old auth.conf does not let this node have the file. Masters up "
        "to version 6 print this message.",
        (
            "A mount in fileserver.conf has no `allow *`.",
            "The path has no module: `puppet:///mod/a` instead of `puppet:///modules/mod/a`.",
            "The module or mount does not exist.",
            "auth.conf has no rule for the path.",
        ),
        (on_master("see its mounts", 'cat "$(puppet config print fileserverconfig --section master)"'),),
        (
            advice("correct the `source` to `puppet:///modules/<module>/<file>`"),
            advice("write `allow *` below its `path` in fileserver.conf", only_if="it is a mount of your own"),
            on_master("restart the server", "systemctl restart puppetserver", only_if="it is a mount of your own"),
        ),
        ("S02", "F02"),
        _W,
    ),
    KnownError(
        (
            ("Forbidden request: X access to /puppet-ca/v1/sign (method :post) denied by rule 'puppetlabs deny all'"),
            "Forbidden request: X access to X (method :get) (authenticated: true) denied by rule 'X'",
            "Forbidden request: X access to X",
            "denied by rule 'puppetlabs deny all'",
        ),
        "The master's auth.conf has no rule that allows the request.",
        (
            "auth.conf is managed by a module or template, and lacks newer endpoints.",
            "The certificate has not got the extension that the rule wants (`pp_cli_auth`).",
            "The request came with another certificate, or with none.",
        ),
        (on_master("look for the rule", "grep -n -A9 match-request /etc/puppetlabs/puppetserver/conf.d/auth.conf"),),
        (
            advice("add the rule to auth.conf, or update the module that manages it"),
            on_master("restart the server", "systemctl restart puppetserver"),
        ),
        ("S02", "B09", "B43"),
        _W,
    ),
    KnownError(
        (
            "Error 403 on SERVER: Forbidden request: /puppet/v3/catalog/NAME. (method :post).",
            "Forbidden request: /puppet/v3/catalog/NAME (method",
            "Forbidden request: /puppet/v3/X/NAME (method",
            "Error 403 on SERVER: Forbidden request",
            "Error 403 on SERVER",
        ),
        "The certname in the path differs from the one in the certificate, or the certificate is missing.",
        (
            "`node_name_value` or `node_name_fact` is set.",
            "The certname has a trailing dot or capital letters.",
            "A load balancer ends TLS, so the master does not know who asks.",
        ),
        (
            on_node("see its name", "puppet config print certname node_name_value --section agent"),
            on_node(
                "see the name in its certificate", 'openssl x509 -noout -subject -in "$(puppet config print hostcert)"'
            ),
        ),
        (
            on_node(
                "use the certname",
                "puppet config delete node_name_value --section agent",
                only_if="`node_name_value` is set",
                destroys="the setting",
            ),
            on_node(
                "use the name in the certificate",
                "puppet config set certname <name> --section main",
                only_if="`node_name_value` is not set",
            ),
            on_node(
                "enrol under this name",
                "{reset}",
                only_if="`node_name_value` is not set",
                destroys="its key and its certificate",
            ),
        ),
        ("T04", "S02", "T03"),
        _W,
    ),
    KnownError(
        (
            "Could not retrieve file metadata for puppet:///plugins: X",
            "Failed to generate additional resources using 'eval_generate': X",
            "Could not retrieve plugin: X",
            "Could not retrieve pluginfacts: X",
            "Failed to retrieve pluginfacts: X",
            "Failed to retrieve plugin: X",
            "Could not retrieve file metadata for X",
        ),
        "The agent could not fetch its plugins or a file. Nearly always a consequence: the first error "
        "of the run names the cause.",
        (
            "TLS with the master failed.",
            "The master cannot be reached.",
            "The master cannot read a file of a module.",
        ),
        (
            advice("read the first error of the run"),
            on_node("check its certificates", "{verify}"),
        ),
        (
            advice("explain the first error of the run"),
            on_master(
                "let the server read the module",
                "chmod -R a+rX <module>",
                only_if="it is `Permission denied` on the master",
            ),
        ),
        ("T05", "T07", "T08", "B10", "B13"),
        _H,
        frame=True,
    ),
    KnownError(
        (
            "Could not retrieve fact='X', resolution='X'",
            "Could not retrieve fact X",
            "Could not retrieve fact",
            "Error while resolving custom fact fact='X'",
            "Error loading fact X",
            "Facter: error while resolving custom fact",
            'error while processing "X" for external facts',
        ),
        "A fact could not be found out. The run goes on without it, and code that uses it may fail.",
        (
            "A command that the fact calls is not installed or failed.",
            "The fact's code is for another version of Ruby or Facter.",
            "A file that it reads does not exist on this node.",
        ),
        (
            on_node("see what fails", "puppet facts show <fact> --debug"),
            on_node("see what fails", "facter -p <fact> --debug", only_if="it is of version 5 or earlier"),
        ),
        (
            advice("correct the fact in its module (lib/facter), or confine it to the nodes where it works"),
            on_node(
                "look for it, and correct it",
                'ls "$(puppet config print pluginfactdest)" /etc/facter/facts.d',
                only_if="it is an external fact",
            ),
        ),
        (),
        _W,
    ),
    KnownError(
        (
            "Could not retrieve local facts: X",
            "Failed to submit facts: X",
            "Could not run: Could not retrieve facts for X",
        ),
        "The agent could not gather or send its facts, so there is no run.",
        (
            "A fact's code raises an error.",
            "Facter is not installed, or of a version that does not fit.",
            "A disk or a network mount hangs.",
        ),
        (
            on_node("see which fact fails", "puppet facts show --debug | tail"),
            on_node("see which fact fails", "facter -p --debug | tail", only_if="it is of version 5 or earlier"),
        ),
        (advice("correct the fact that it names"),),
        ("R11",),
        None,
    ),
    KnownError(
        (
            "The current total number of facts: X exceeds the number of facts limit",
            "exceeds the top facts limit",
            "exceeds the value length limit",
            "exceeds the payload size limit",
            "with length: X exceeds the length limit",
        ),
        "The facts of this node are larger than the agent's own limits. It is a warning; the run goes on.",
        ("A fact lists something that grows: packages, mounts, containers.",),
        (on_node("see how large the facts are", "puppet facts show | wc -c"),),
        (
            advice("make the fact smaller"),
            on_node(
                "raise the limit, for example that of their number",
                "puppet config set number_of_facts_soft_limit 4096 --section agent",
                only_if="it cannot be smaller",
            ),
        ),
        ("R11",),
        _W,
        old=False,
    ),
    KnownError(
        (
            "Could not find command 'X'",
            "is not qualified and no path was specified",
        ),
        "An exec resource calls a program that is not found on the node.",
        (
            "The package with the program is not installed yet: a `require` is missing.",
            "`path` of the exec does not name its directory.",
        ),
        (on_node("see whether the program is there", "command -v <program>"),),
        (advice("let the exec require the package, and set `path => ['/usr/bin', '/usr/sbin', '/bin', '/sbin']`"),),
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "returned X instead of one of [0]",
            "returned X instead of one of",
        ),
        "The command of an exec resource failed on the node.",
        (
            "The command is wrong for this system.",
            "It depends on something that is not there yet.",
            "It may run only once, and has no `unless`, `onlyif` or `creates`.",
        ),
        (on_node("run the command by hand as root, without the environment of your shell", "env -i <command>"),),
        (
            advice("correct the command, or add `unless`, `onlyif` or `creates`"),
            advice("allow it: `returns => [0, 2]`", only_if="another exit status is no error"),
        ),
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Command exceeded timeout",
            "Execution of X timed out",
        ),
        "The command of an exec resource took longer than its `timeout` (300 seconds).",
        (
            "The command waits for an answer or a network.",
            "It really takes long.",
        ),
        (on_node("run the command by hand", "time <command> </dev/null"),),
        (advice("raise its `timeout` (0: none), or let it not ask"),),
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Unable to locate package",
            "No package X available",
            "Unable to find a match",
            "Could not get latest version",
            "Execution of 'X' returned 100",
            "No candidate version",
            "E: Unable to locate package",
        ),
        "The node's package manager does not know the package.",
        (
            "The repository that has it is not configured, or its list was not fetched (`apt-get update`).",
            "The name is that of another distribution.",
            "The repository cannot be reached.",
        ),
        (
            on_node("look for the package", "apt-cache policy <package>", only_if="its packages are those of apt"),
            on_node("look for the package", "yum info <package>", only_if="its packages are those of yum"),
        ),
        (
            advice(
                "add the repository, and let the package require it: with apt `Class['apt::update'] -> Package <| |>`"
            ),
        ),
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Could not find init script for 'X'",
            "Could not find init script or upstart conf file for",
            "Systemd start for X failed",
            "Could not start Service[X]",
            "Execution of '/usr/bin/systemctl X' returned",
        ),
        "A service could not be started or does not exist on the node.",
        (
            "The package that brings the service is not installed.",
            "Its configuration is wrong, so it stops at once.",
            "The name of the service is another one on this system.",
        ),
        (
            on_node("see whether it is there", "systemctl status <service>"),
            on_node("read why it stops", "journalctl -u <service> -n 30"),
        ),
        (advice("correct its configuration, or let the service require its package and files"),),
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Could not find user X",
            "Could not find group X",
            "Could not set 'X' on ensure: X",
            "Could not find a suitable provider for X",
            "Provider X is not functional on this host",
        ),
        "A resource needs a user, group or tool that is not on the node.",
        (
            "The user or group is created later in the catalog: a `require` is missing.",
            "The tool of the provider is not installed (for example augeas, git).",
            "The name is misspelt.",
        ),
        (
            on_node("look for the user", "getent passwd <user>"),
            on_node("look for the group", "getent group <group>"),
        ),
        (advice("let the resource require the user, the group or the package"),),
        ("P01",),
        _W,
    ),
    KnownError(
        (
            "Skipping because of failed dependencies",
            "Dependency X has failures: true",
            "Skipping because of failed dependencies",
        ),
        "The resource was not touched, because one that it requires failed. It is a consequence.",
        ("The resource that the message names failed earlier in this run.",),
        (advice("read the first error of the run"),),
        (advice("correct the resource that failed first; the others follow in the next run"),),
        ("P01",),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Could not back up X",
            "Got passed new contents for sum",
            "Could not back up",
            "Existing backup and new file have different content but same checksum",
        ),
        "The old content of a file could not be sent to the master's filebucket, so the file was not changed.",
        (
            "The digest of agent and master differ (md5 or sha256).",
            "The file is too large.",
            "The master cannot write into its bucket.",
        ),
        (
            on_node("see its digest", "puppet config print digest_algorithm"),
            on_master("see its digest", "puppet config print digest_algorithm"),
        ),
        (
            on_node("use the same digest on both", "puppet config set digest_algorithm sha256 --section main"),
            on_master("use the same digest on both", "puppet config set digest_algorithm sha256 --section main"),
            advice("turn the backup off: `backup => false`", only_if="the file needs none"),
        ),
        ("F12", "F14"),
        _W,
    ),
    KnownError(
        (
            "File written to disk did not match desired checksum",
            "did not match desired checksum",
            "File written to disk did not match checksum; discarding changes",
        ),
        "The content of a file is not what its metadata say, so the file was not changed.",
        (
            "The code was deployed while the agent was reading it.",
            "Metadata and content came from different compilers.",
            "The answer was cut off on its way.",
        ),
        (on_node("run it once more", "puppet agent -t"),),
        (
            on_master("compare the file on the compilers", "sha256sum <file>", only_if="it comes again"),
            advice("deploy to all of them at the same time", only_if="it comes again"),
        ),
        ("F03", "S20", "S14"),
        _W,
    ),
    KnownError(
        (
            "No space left on device",
            "Disk quota exceeded",
        ),
        "A disk is full, on the node or on the master (then it follows `Error 500 on SERVER`).",
        (
            "Logs, reports or the filebucket have grown.",
            "All inodes are in use.",
        ),
        (
            on_node("see which disk is full", "df -h"),
            on_node("see whether inodes are left", "df -i"),
            on_master("see which disk is full", "df -h"),
            on_master("see whether inodes are left", "df -i"),
        ),
        (
            on_master(
                "delete old reports",
                'find "$(puppet config print reportdir --section master)" -mtime +14 -delete',
                only_if="it is the master's disk",
                destroys="the reports from before the last two weeks",
            ),
            advice("free space there", only_if="it is the node's disk"),
        ),
        ("P01",),
        None,
    ),
    KnownError(
        (
            "Permission denied - X",
            "Permission denied @ X",
            "Permission denied",
            "Operation not permitted",
            "EACCES",
        ),
        "A process may not read or write a file.",
        (
            "The agent does not run as root.",
            "On the master: user puppet cannot read a module's file (it follows `Error 500 on SERVER`).",
            "SELinux or a read-only mount forbids it.",
        ),
        (
            on_node("look at the file", "ls -lZ <file>", only_if="it is a file of the node"),
            on_master("look at the file", "ls -lZ <file>", only_if="it is a file of the master"),
        ),
        (
            on_master(
                "let the server read the code",
                'chmod -R a+rX "$(puppet config print environmentpath --section master)"',
                only_if="it is a file of the master",
            ),
            advice("run the agent as root", only_if="it is a file of the node"),
        ),
        ("P01", "S01"),
        None,
    ),
    KnownError(
        ("Failed to apply catalog: undefined method 'name' for nil",),
        "A bug of OpenVox 9.0.0-rc1 that hides the real error, which is printed above it.",
        ("The run failed before there was a catalog.",),
        (advice("read the first error of the run"),),
        (
            advice("correct what the first error of the run names"),
            advice("upgrade OpenVox"),
        ),
        ("R20", "S01"),
        _W,
    ),
    KnownError(
        (
            "Failed to apply catalog: X",
            "Could not apply complete catalog: X",
            "Could not run Puppet configuration client: X",
            "Could not evaluate: X",
        ),
        "The agent stopped while it applied the catalog. What follows names the reason.",
        (
            "A resource's type or provider failed.",
            "Resources require each other in a circle.",
        ),
        (on_node("run it with more detail", "puppet agent -t --debug --trace"),),
        (advice("correct what follows the colon"),),
        ("P01", "P05"),
        _W,
        frame=True,
    ),
)
