"""Messages about compiling a catalog: its code, and the modules that it uses."""

from __future__ import annotations

from inspector.analysis.known_errors.matching import KnownError
from inspector.model import Visible
from inspector.rules.fixes import advice, on_master, on_node

_W = Visible.WIRE
_MODULES = on_master("see which modules it has", "puppet module list --environment <environment>")
_ENVIRONMENT = on_node("see which environment it uses", "puppet config print environment --section agent")
_FLUSH = on_master("flush the environment cache", "systemctl reload puppetserver")
_GEMS = (
    on_master("install the gem", "puppetserver gem install <gem>", only_if="a gem is missing in the server"),
    on_master("restart the server", "systemctl restart puppetserver", only_if="a gem is missing in the server"),
    on_node("install the gem", "/opt/puppetlabs/puppet/bin/gem install <gem>", only_if="a gem is missing in the agent"),
)

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
        (
            _MODULES,
            _ENVIRONMENT,
        ),
        (
            on_master("deploy the module", "r10k deploy environment <environment> -m", only_if="r10k deploys the code"),
            on_master(
                "install the module",
                "puppet module install <author-module> --environment <environment>",
                only_if="nothing deploys the code",
            ),
            _FLUSH,
        ),
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
        (advice("look at both places that the message names: file and line"),),
        (
            advice("keep one of them"),
            advice("use `stdlib::ensure_packages(['name'])`", only_if="several modules need the same package"),
            advice("use `include` instead of `class {{ ... }}`", only_if="it is a class"),
            advice("put `$title` into the resource's title", only_if="it is in a defined type"),
        ),
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
        (
            on_master(
                "see which node blocks there are",
                "grep -rn '^ *node ' \"$(puppet config print manifest --section master --environment production)\"",
            ),
        ),
        (advice("add a node block for it, or one for `default`: `node default {{ }}`"),),
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
        (_MODULES,),
        (
            on_master(
                "install the module that has it, for example stdlib",
                "puppet module install puppetlabs-stdlib --environment <environment>",
                only_if="a module is missing",
            ),
            *_GEMS,
        ),
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
        (
            on_master("see which gems the server has", "puppetserver gem list"),
            on_node("see which gems the agent has", "/opt/puppetlabs/puppet/bin/gem list"),
        ),
        (*_GEMS,),
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
        (_MODULES,),
        (
            on_master(
                "install the module that has it",
                "puppet module install <author-module> --environment <environment>",
                only_if="it is missing",
            ),
            on_master(
                "keep the types of each environment apart",
                "puppet generate types --environment <environment>",
                only_if="types of several environments collide",
            ),
        ),
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
        (
            advice("look at the file and line that the message names"),
            on_master(
                "see the module's version, and compare with its reference",
                "puppet module list --environment <environment>",
            ),
        ),
        (
            on_master("see where a value comes from", "puppet lookup <class>::<parameter> --node {name} --explain"),
            advice("correct the call or the data"),
        ),
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
        (on_master("check the file", "puppet parser validate <file>"),),
        (
            advice("correct the line that it names"),
            advice("deploy the code again"),
        ),
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
        (
            on_node("look for the fact", "puppet facts show"),
            on_node("look for the fact", "facter -p", only_if="it is of version 5 or earlier"),
        ),
        (
            advice("use the structured fact, for example `$facts['os']['family']`"),
            on_master(
                "allow such variables until then",
                "puppet config set strict_variables false --section master",
                only_if="the code cannot be changed now",
            ),
            on_master("restart the server", "systemctl restart puppetserver", only_if="the code cannot be changed now"),
        ),
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
        (
            on_master("check it", "puppet epp validate <file>", only_if="it is an EPP template"),
            on_master("check it", "erb -P -x -T - <file> | ruby -c", only_if="it is an ERB template"),
        ),
        (advice("deploy the file, or correct the path or the template"),),
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
        (advice("look at the reference: the message names its file and line"),),
        (advice("correct the title, or include the class that declares it"),),
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
        (
            advice("read the circle in the message"),
            on_node("write it as a graph", "puppet agent -t --noop --graph"),
            on_node("see where the graph is", "puppet config print graphdir"),
        ),
        (advice("remove one of the relationships that the message lists"),),
        ("P01", "R20"),
        _W,
    ),
)
