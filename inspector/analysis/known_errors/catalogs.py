"""Messages about compiling a catalog: code, data, node and environment."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible

_W = Visible.WIRE
_MODULES = "On the master run `puppet module list --environment <environment>`."
_ENVIRONMENTS = 'On the master run `ls "$(puppet config print environmentpath --section master)"`.'

MESSAGES: tuple[KnownError, ...] = (
    KnownError(
        (
            "Could not find class X for NAME",
            "Could not find class",
            "Could not find declared class",
            "Could not find parent resource type",
            "Could not find parent class",
        ),
        "The code or the classifier names a class that the master does not find in this environment.",
        (
            "The module is not deployed in this environment (Puppetfile, r10k).",
            "The name is misspelt, or the file is not at its place: class a::b belongs to a/manifests/b.pp.",
            "The environment is not the one you think.",
            "With several compilers: this one has older code.",
        ),
        _MODULES + " On the node run `puppet config print environment --section agent`.",
        "Deploy the module: `r10k deploy environment <environment> -m` or `puppet module install "
        "<author-module> --environment <environment>`. Then flush the environment cache: `systemctl "
        "reload puppetserver`.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Duplicate declaration: X is already declared",
            "Duplicate declaration",
            "Duplicate definition",
            "Cannot alias X to X; resource X already declared",
            "Cannot alias X to X at X; resource X already declared",
        ),
        "Two pieces of code declare the same resource, and a catalog can have it only once.",
        (
            "Two modules manage the same file, package or user.",
            "A class is declared with parameters and included before that.",
            "A defined type that is used twice has a resource with a fixed title.",
        ),
        "The message names both places: file and line.",
        "Keep one of them. For a shared package use `stdlib::ensure_packages(['name'])`, for a class "
        "`include` instead of `class {{ ... }}`, in a defined type put `$title` into the resource's "
        "title.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Function lookup() did not find a value for the name X",
            "did not find a value for the name",
            "Could not find data item X in any Hiera data file and no default supplied",
            "Error looking up X in any Hiera data file",
        ),
        "Hiera has no value for this key, and the call has no default.",
        (
            "The key is missing in the data of this environment.",
            "The hierarchy has no level for this node, because a fact is missing or different.",
            "The key or the data file's name is misspelt.",
            "hiera.yaml is of version 3 where version 5 is expected.",
        ),
        "On the master run `puppet lookup <key> --node {name} --environment <environment> --explain`.",
        "Add the key to the data, or give the call a default: `lookup('key', String, 'first', 'value')`.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Lookup of key X failed: X",
            "hiera.yaml has wrong type",
            "Data Provider type mismatch",
            "Unable to parse hiera.yaml",
            "could not find expected ':'",
            "did not find expected key while parsing a block mapping",
        ),
        "The data of the environment cannot be read.",
        (
            "A YAML file has a wrong indentation or a tab.",
            "hiera.yaml names a path or backend that does not exist.",
            "An encrypted value has no key (eyaml).",
        ),
        "On the master run `puppet lookup <key> --node {name} --environment <environment> --explain`.",
        "Correct the file that it names; `ruby -ryaml -e 'YAML.load_file(ARGV[0])' <file>` finds the line.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Failed to find NAME via exec",
            "Failed to find NAME via exec: Execution of 'X' returned X",
            "Failed when searching for node NAME",
            "Could not load external node results for NAME",
            "Could not find terminus X for indirection node",
            "You must set the 'external_nodes' parameter",
        ),
        "The node classifier (`external_nodes`, a script on the master) failed for this node.",
        (
            "The script exits with an error: the node is unknown to it (for example to Foreman).",
            "The service that it asks does not answer, or its certificate has expired.",
            "The script is missing, not executable, or prints no YAML.",
        ),
        'On the master run `sudo -u puppet "$(puppet config print external_nodes --section master)" {name}; echo $?`.',
        "Repair what it reports. If the site has no classifier: `puppet config set node_terminus plain "
        "--section master; systemctl restart puppetserver`.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Could not find node statement with name 'default' or 'X' on node X",
            "Could not find default node or by name",
        ),
        "site.pp has node blocks, and none of them matches this node.",
        (
            "The node is new, and has no block.",
            "Its certname is not the name in the block.",
            "The manifest of another environment is used.",
        ),
        "On the master run `grep -rn '^ *node ' \"$(puppet config print manifest --section master "
        '--environment production)"`.',
        "Add a node block for it, or one for `default`: `node default {{ }}`.",
        ("S01",),
        _W,
    ),
    KnownError(
        (
            "Could not find node 'NAME'; cannot compile",
            "Could not find node",
        ),
        "The master has no facts or no node object for this name.",
        (
            "A tool asks for the catalog of a node that never reported.",
            "The node classifier does not know it.",
        ),
        "On the master run `puppet node find {name}`.",
        "Run the agent on the node first: `puppet agent -t`.",
        ("S01",),
        _W,
    ),
    KnownError(
        (
            "Unknown function: 'X'",
            "Unknown function X at",
            "Could not autoload puppet/parser/functions",
            "Could not autoload X: X",
            "Could not autoload",
        ),
        "The code uses a function, type or provider that cannot be loaded.",
        (
            "The module that has it is not deployed in this environment, most often stdlib.",
            "Its Ruby code needs a gem that is not installed in puppetserver or in the agent.",
            "Its Ruby code is for another version of Ruby or Puppet: older or newer.",
        ),
        _MODULES,
        "Install the module, for example `puppet module install puppetlabs-stdlib --environment "
        "<environment>`. For a missing gem: `puppetserver gem install <gem>; systemctl restart "
        "puppetserver` on the master, `/opt/puppetlabs/puppet/bin/gem install <gem>` on the node.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "cannot load such file -- X",
            "no such file to load",
        ),
        "Ruby code of a module or of Puppet needs a library that is not installed.",
        (
            "A gem is missing in the Ruby of puppetserver or of the agent.",
            "The agent runs with the system's Ruby instead of its own.",
        ),
        "On the master run `puppetserver gem list`, on the node `/opt/puppetlabs/puppet/bin/gem list`.",
        "`puppetserver gem install <gem>; systemctl restart puppetserver` on the master, "
        "`/opt/puppetlabs/puppet/bin/gem install <gem>` on the node.",
        ("S01",),
        None,
    ),
    KnownError(
        (
            "Unknown resource type: 'X'",
            "Invalid resource type X",
            "Puppet::Parser::AST::Resource failed with error ArgumentError: Invalid resource type",
            "Could not find type",
        ),
        "The code uses a resource type or defined type that the master does not know.",
        (
            "The module that has it is not deployed in this environment.",
            "The name is misspelt.",
            "A type of another environment's version is in the way (environment isolation).",
        ),
        _MODULES,
        "Install the module: `puppet module install <author-module> --environment <environment>`. If "
        "types of several environments collide: `puppet generate types --environment <environment>`.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "no parameter named 'X'",
            "has no parameter named 'X'",
            "Invalid parameter X",
            "expects a value for parameter 'X'",
            "Must pass X to Class",
            "parameter 'X' expects a",
            "expects a value of type",
            "parameter 'X' expects an",
            "expects at least X arguments, got",
            "Error while evaluating a Resource Statement, Evaluation Error: X expects",
        ),
        "A class, defined type, resource or function gets a parameter that it does not have, lacks one, "
        "or gets a value of another type.",
        (
            "The module was updated, and its parameters changed.",
            "Hiera has a value of another type, for example a string instead of a number.",
            "The parameter is misspelt.",
        ),
        "The message names file and line. On the master run `puppet module list --environment "
        "<environment>`, and compare with the module's reference.",
        "Correct the call or the data: `puppet lookup <class>::<parameter> --node {name} --explain` "
        "shows where a value comes from.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Syntax error at X",
            "Could not parse for environment X",
            "This Name has no effect",
        ),
        "The master cannot parse the code of the environment.",
        (
            "A brace, comma or quote is missing just before the place that the message names.",
            "The code is for a newer or older version of Puppet.",
            "A merge left its marks in the file.",
        ),
        "On the master run `puppet parser validate <file>`.",
        "Correct the line that it names, then deploy the code again.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Unknown variable: 'X'",
            "Evaluation Error: Unknown variable",
            "undefined variable",
        ),
        "The code uses a variable that has no value, and `strict_variables` makes that an error (the "
        "default from version 8 on).",
        (
            "A legacy fact such as `$osfamily`: version 8 sends none.",
            "The class that sets it is not included yet.",
            "The name is misspelt.",
        ),
        "On the node run `puppet facts show` (up to version 5: `facter -p`) and look for the fact.",
        "Use the structured fact, for example `$facts['os']['family']`. As a workaround on the master: "
        "`puppet config set strict_variables false --section master; systemctl restart puppetserver`.",
        ("S01", "R15"),
        _W,
    ),
    KnownError(
        (
            "Could not find template 'X'",
            "Failed to parse template X",
            "Could not find value for",
            "Evaluation Error: Error while evaluating a Function Call, Failed to parse inline template",
            "Could not find any files from",
        ),
        "A template or file that the code names is missing, or its code fails.",
        (
            "The path is wrong: `template('mod/x.erb')` is mod/templates/x.erb.",
            "The module is not deployed here.",
            "The template uses a variable without a value.",
        ),
        "On the master run `puppet epp validate <file>`, or `erb -P -x -T - <file> | ruby -c` for ERB.",
        "Deploy the file, or correct the path or the template.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Could not find resource 'X' in parameter 'X'",
            "Could not find resource X for relationship",
            "Could not find dependency X for X",
            "Could not find relationship target X for X",
            "Could not find relationship source X for X",
            "Could not find dependent X for X",
        ),
        "A resource refers to another one (`require`, `before`, `notify`, `subscribe`, arrows) that is "
        "not in the catalog.",
        (
            "The other resource's title is misspelt.",
            "The class that declares it is not included for this node.",
            "A condition leaves it out.",
        ),
        "The message names file and line of the reference.",
        "Correct the title, or include the class that declares it.",
        ("S01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Found X dependency cycle",
            "One or more resource dependency cycles detected in graph",
            "Found 1 dependency cycle",
        ),
        "Resources require each other in a circle, so none can come first.",
        (
            "Two classes require each other.",
            "A resource collector with an arrow catches more resources than intended.",
        ),
        "The message lists the circle. `puppet agent -t --noop --graph` writes it below `puppet config "
        "print graphdir`.",
        "Remove one of the relationships that the message lists.",
        ("P01", "R20"),
        _W,
    ),
    KnownError(
        (
            "Could not intern from X: X",
            "Could not intern from",
            "Could not intern_multiple from",
            "Could not render to X: X",
            "Could not render X",
            "unexpected token at",
        ),
        "One end cannot make an object from what it received: the text is no valid JSON, PSON or YAML, "
        "or its content is not what it expects.",
        (
            "`puppet catalog download` without facts: it is no agent's run.",
            "Facts or reports contain characters that are not UTF-8, often from a locale or a file.",
            "Agent and master are many versions apart.",
            "A proxy cut the answer off.",
        ),
        "On the node run `puppet facts show | iconv -f utf-8 -t utf-8 >/dev/null && echo valid` (up to "
        "version 5: `facter -p -j`).",
        "Correct the fact, or run the agent with `LANG=C.UTF-8`. If versions differ: upgrade the master first.",
        ("S01", "S10", "S14"),
        _W,
    ),
    KnownError(
        (
            "Failed to serialize X for 'X': source sequence is illegal/malformed utf-8",
            "source sequence is illegal/malformed utf-8",
            "invalid byte sequence in UTF-8",
            "incompatible character encodings",
            "not valid UTF-8",
            "invalid byte sequence in US-ASCII",
        ),
        "The catalog or the facts contain bytes that are not UTF-8.",
        (
            "`file()` or a template reads a binary file.",
            "A file name or a fact is in another encoding.",
            "The agent or master runs with LANG=C.",
        ),
        "On the master run `grep -rlP '[^\\x00-\\x7F]' <module>/files <module>/templates`.",
        "Use `binary_file()` instead of `file()`, or rename or convert the file.",
        ("S01", "S10"),
        _W,
    ),
    KnownError(
        (
            "Environment 'X' not found on server, aborting run",
            "Environment 'X' not found on server, skipping initial pluginsync",
            "Environment 'X' not found on server",
            "Could not find environment 'X'",
            "Could not find a directory environment named 'X'",
            "Error 404 on SERVER: Not Found: Could not find environment 'X'",
        ),
        "The master has no environment of this name.",
        (
            "The branch was deleted or never deployed.",
            "`environment` in the agent's puppet.conf is wrong.",
            "The classifier assigns a name that does not exist.",
            "With several compilers: this one has not got it yet.",
        ),
        _ENVIRONMENTS + " On the node run `puppet config print environment --section agent`.",
        "Deploy it: `r10k deploy environment <environment> -m`. Or on the node: `puppet config set "
        "environment production --section agent`. If it was deployed only now, flush the cache: "
        "`systemctl reload puppetserver`.",
        ("R09", "S01"),
        _W,
    ),
    KnownError(
        (
            "Local environment: 'X' doesn't match server specified environment 'X', restarting agent run",
            "Local environment: 'X' doesn't match server specified node environment 'X', switching agent to",
            "Catalog environment didn't stabilize after X fetches, aborting run",
            "Not using catalog because its environment 'X' does not match agent specified environment 'X'",
            "Not using cached catalog because its environment 'X' does not match",
        ),
        "The classifier assigns a different environment than the agent requested; the agent gives up if "
        "the answer changes with each try.",
        (
            "`environment` in the agent's puppet.conf is not that of the classifier.",
            "A rule of the classifier depends on a fact that changes.",
            "`strict_environment_mode` is set.",
        ),
        "On the node run `puppet config print environment strict_environment_mode --section agent`.",
        "Let the server decide: `puppet config delete environment --section agent`, and correct "
        "classifier rules that depend on changing facts.",
        ("R06", "R08", "R07"),
        _W,
    ),
    KnownError(
        (
            "The environment must be purely alphanumeric, not 'puppet-ca'",
            "The environment must be purely alphanumeric, not X",
            "Error 404 on SERVER: Could not find environment 'puppet'",
            "Invalid environment name",
        ),
        "An agent of Puppet 4 or later connects to a master of Puppet 3, whose URLs begin with the "
        "environment; or the environment's name has other characters than letters, digits and `_`.",
        (
            "The agent was upgraded before the master.",
            "A branch name with `-` or `.` became an environment.",
        ),
        "On the node run `puppet --version`, on the master as well.",
        "Upgrade the master first: it must never be older than its agents.",
        ("S03", "S16"),
        _W,
    ),
    KnownError(
        (
            "Catalog for X was requested with fact definition for the wrong node",
            "Unsupported facts format",
            "Facts but no fact format provided",
        ),
        "The facts of the request are of another node than the catalog, or in a form that the master does not know.",
        (
            "`node_name_value` or `node_name_fact` is set on the agent.",
            "A tool builds the request.",
        ),
        "On the node run `puppet config print certname node_name_value node_name_fact --section agent`.",
        "Delete the setting: `puppet config delete node_name_value --section agent`.",
        ("R13", "S01"),
        _W,
    ),
    KnownError(
        ("Unable to find a common checksum type between agent",),
        "Agent and master have no digest in common for the files of a static catalog.",
        (
            "`digest_algorithm` or `supported_checksum_types` is set on one end.",
            "FIPS mode forbids md5.",
        ),
        "On both run `puppet config print digest_algorithm supported_checksum_types`.",
        "On both: `puppet config set digest_algorithm sha256 --section main`.",
        ("F07", "S01"),
        _W,
    ),
    KnownError(
        (
            "Failed to submit 'replace facts' command",
            "Failed to find facts from PuppetDB",
            "Failed to find resources from PuppetDB",
            "Could not retrieve facts for X: Failed",
            "Failed to execute '/pdb",
            "PuppetDB-specific error",
            "Failed to submit X command for X to PuppetDB",
        ),
        "The master cannot reach PuppetDB, or PuppetDB refuses what it gets.",
        (
            "PuppetDB is stopped or starting.",
            "Its certificate is not of this CA, or its name does not fit.",
            "A fact or resource cannot be stored (a NUL character, too large).",
        ),
        'On the master run `cat "$(puppet config print confdir --section master)/puppetdb.conf"; '
        "systemctl status puppetdb`.",
        "Start it: `systemctl restart puppetdb`; after a new CA run `puppetdb ssl-setup -f; systemctl "
        "restart puppetdb`.",
        ("S01",),
        _W,
    ),
    KnownError(
        (
            "Attempt to borrow a JRuby instance from the pool timed out",
            "exceeded max-queued-requests",
            "Unable to borrow a JRuby instance",
            "OutOfMemoryError",
            "GC overhead limit exceeded",
        ),
        "puppetserver has no free JRuby for the request, or no memory.",
        (
            "Too many agents at once for its JRubies.",
            "Catalogs take too long.",
            "The heap is too small.",
        ),
        "On the master run `grep -e max-active -e Xmx -r /etc/puppetlabs/puppetserver /etc/default/puppetserver`.",
        "Raise `max-active-instances` and the heap (-Xmx in JAVA_ARGS, about 0.5 GB for each), then "
        "`systemctl restart puppetserver`; spread the runs with `splay`.",
        ("S05", "S06"),
        _W,
    ),
    KnownError(
        (
            ("Could not retrieve catalog from remote server: Error 500 on SERVER: Server Error: Evaluation Error: X"),
            "Server Error: Evaluation Error",
            "Error 500 on SERVER: Server Error",
            "Error 400 on SERVER: X at X:X on node X",
            "Error 400 on SERVER",
            "Error 500 on SERVER",
            "Internal Server Error",
            "Evaluation Error: Error while evaluating",
        ),
        "The master could not compile the catalog, or failed with another error of its own. What follows "
        "names the reason.",
        (
            "An error in the code, the Hiera data or a template.",
            "`fail()` in a module stops on purpose.",
            "A service of the master failed: PuppetDB, the classifier.",
        ),
        "The message names file, line and column.",
        "Fix the code there; `puppet parser validate <file>` checks its syntax. Without file and line, "
        "read the master's log: `tail -n 50 /var/log/puppetlabs/puppetserver/puppetserver.log`.",
        ("S01", "R20"),
        _W,
        frame=True,
    ),
    KnownError(
        (
            "Find X resulted in 404 with the message: X",
            "Error 404 on SERVER",
            "Not Found: Could not find X",
        ),
        "The master has not got what was requested.",
        (
            "The environment does not exist there.",
            "A file or a node is missing.",
            "The master is too old for the agent's URLs.",
        ),
        _ENVIRONMENTS,
        "Deploy what the message names. If the master is older than the agent, upgrade it first.",
        ("R09", "S03", "F02"),
        _W,
        frame=True,
    ),
)
