"""Who prints what a file contains, in which phase, and about which request: a table by program, path and function."""

from __future__ import annotations

import re
from typing import NamedTuple

LOCAL = "nothing between agent and master"
REQUEST = "about a request of the agent to the server that it uses"
CA = "about a request of the agent to the CA"
ANSWER = "an agent receives it in the answer to its request"
COMPILED = "an agent receives it in the answer to its request for a catalog"
UNSEEN = "only in the server's log"
CALL = "about a request of the tool to the CA"
STORED = "about a request of the master to PuppetDB"
OWN = "nothing between agent and master: a command prints it"


class Place(NamedTuple):
    """Where in a program a message is printed."""

    paths: str
    """A pattern of paths, and of functions behind a space; it is matched from the beginning."""
    printer: str
    phase: str
    between: str


_LIB = "lib/puppet/"
_APPLYING = "while it applies its catalog"
_COMPILING = "while it compiles a catalog"
_BOOTSTRAP = "at the start of a run, when it gets its certificates"

_PUPPET = (
    # -- a run --------------------------------------------------------------------------------------------
    Place(
        r"configurer\.rb .*\.init_storage",
        "the agent's configurer",
        "before the catalog is applied, about its state file",
        LOCAL,
    ),
    Place(
        r"configurer\.rb .*(?:fact|payload|_limit)", "the agent's configurer", "when it has gathered its facts", LOCAL
    ),
    Place(r"configurer\.rb .*from_cache", "the agent's configurer", "when it takes its catalog from the cache", LOCAL),
    Place(r"configurer\.rb .*retrieve", "the agent's configurer", "when it requests its catalog", REQUEST),
    Place(r"configurer\.rb .*convert", "the agent's configurer", "when it has received its catalog", LOCAL),
    Place(r"configurer\.rb .*apply_catalog", "the agent's configurer", "after the catalog was applied", LOCAL),
    Place(
        r"configurer\.rb .*send_report",
        "the agent's configurer",
        "after the catalog was applied, about its report",
        REQUEST,
    ),
    Place(
        r"configurer\.rb .*save_last_run_summary",
        "the agent's configurer",
        "after the catalog was applied, about its summary of the run",
        LOCAL,
    ),
    Place(
        r"configurer\.rb .*execute",
        "the agent's configurer",
        "before or after the run, about prerun_command or postrun_command",
        LOCAL,
    ),
    Place(
        r"configurer\.rb .*environment",
        "the agent's configurer",
        "at the start of a run, about its environment",
        REQUEST,
    ),
    Place(
        r"configurer\.rb .*functional_server",
        "the agent's configurer",
        "at the start of a run, about server_list",
        REQUEST,
    ),
    Place(r"configurer\.rb .*(?:plugin|download)", "the agent's configurer", "when it downloads plugins", REQUEST),
    Place(
        r"configurer\.rb",
        "the agent's configurer",
        "during a run",
        "the rest of the message says whether it is about a request",
    ),
    Place(r"configurer/(?:downloader|plugin)", "the agent's download of plugins", "before it gathers facts", REQUEST),
    Place(r"configurer/fact", "the agent's configurer", "when it gathers facts", LOCAL),
    Place(r"util/storage", "the agent's state file", "before or after the catalog is applied", LOCAL),
    Place(r"agent|util/(?:pid|json_)?lock|util/splay", "the agent", "before a run starts, or at its end", LOCAL),
    Place(r"daemon|scheduler|util/signal", "the agent's daemon", "between runs", LOCAL),
    # -- certificates of an agent -------------------------------------------------------------------------
    Place(r"ssl/state_machine.* .*(?:CACert|_ca)", "the agent's bootstrap", f"{_BOOTSTRAP}, about the CA's", CA),
    Place(r"ssl/state_machine.* .*(?:CRL|_crl)", "the agent's bootstrap", f"{_BOOTSTRAP}, about CRLs", CA),
    Place(r"ssl/state_machine.* NeedKey", "the agent's bootstrap", f"{_BOOTSTRAP}, about its key", LOCAL),
    Place(r"ssl/state_machine.* NeedSubmit", "the agent's bootstrap", f"{_BOOTSTRAP}, about its request for one", CA),
    Place(r"ssl/state_machine.* NeedRenew", "the agent's bootstrap", f"{_BOOTSTRAP}, about the renewal of its own", CA),
    Place(
        r"ssl/state_machine.* (?:NeedLock|LockFailure)",
        "the agent's bootstrap",
        f"{_BOOTSTRAP}, about the lock of another process",
        LOCAL,
    ),
    Place(r"ssl/(?:state_machine|host)", "the agent's bootstrap", _BOOTSTRAP, CA),
    Place(
        r"ssl/(?:ssl_provider|validator|verifier|error|ssl_context)|util/ssl",
        "the agent's check of certificates",
        "when it loads its own or connects",
        "about its files in ssldir, or the server's certificate",
    ),
    Place(
        r"ssl/(?:certificate_authority|certificate_factory|inventory|certificate_signer)",
        "the CA of a master (up to version 5)",
        "when it signs, lists or revokes",
        ANSWER,
    ),
    Place(
        r"x509/|ssl/|indirector/(?:certificate|key|ssl_file|ca/)",
        "the agent's files of certificates and keys",
        "when they are read or written",
        "about files in ssldir",
    ),
    # -- HTTP ---------------------------------------------------------------------------------------------
    Place(
        r"http/(?:service|session|resolver|dns)",
        "the agent's HTTP client",
        "when it chooses a server for a request",
        REQUEST,
    ),
    Place(
        r"http/|network/(?:http_pool|resolver|http/(?:connection|pool|site|session|factory|nocache|error|compression))",
        "the agent's HTTP client",
        "when it sends a request or reads the answer",
        REQUEST,
    ),
    Place(
        r"indirector/rest|indirector/.*/rest|indirector/generic_http|rest/|util/(?:connection|http_proxy)",
        "the agent's HTTP client",
        "when it sends a request or reads the answer",
        REQUEST,
    ),
    Place(
        r"network/(?:http/|http\.rb|http_server|auth|rest|rights|server|xmlrpc|handler|client_request|rest_authconfig)",
        "the master's HTTP layer",
        "when it answers a request",
        ANSWER,
    ),
    Place(r"network/format|network/", "an agent or a master", "when it reads or writes the body of a request", REQUEST),
    # -- compiling ----------------------------------------------------------------------------------------
    Place(
        r"pops/lookup|data_?binding|hiera|\.\./hiera|functions/(?:hiera|lookup)|indirector/(?:data_binding|hiera)",
        "the master's lookup of data (Hiera)",
        _COMPILING,
        COMPILED,
    ),
    Place(
        r"pops/(?:parser|validation|issue|issues|semantic)|parser/(?:lexer|parser|grammar)|syntax_checkers",
        "the master's parser of manifests",
        _COMPILING,
        COMPILED,
    ),
    Place(
        r"pops/loader|pops/loaders|loaders|module\.rb|module/|environments|node/environment|pal/",
        "the master's loader of environments and modules",
        _COMPILING,
        COMPILED,
    ),
    Place(
        r"pops|parser|functions|resource/type|datatypes|dsl|pops/time|rails|external/nagios|templatewrapper",
        "the master's compiler",
        _COMPILING,
        COMPILED,
    ),
    Place(
        r"indirector/(?:catalog|code|resource_type|instrumentation|status)",
        "the master's compiler",
        _COMPILING,
        COMPILED,
    ),
    Place(
        r"node|indirector/node|indirector/exec|indirector/ldap|util/ldap|trusted_external|node/facts",
        "the master's node terminus",
        "before it compiles a catalog",
        COMPILED,
    ),
    Place(
        r"indirector/facts|indirector/fact_search",
        "an agent's facts",
        "when they are gathered, sent or stored",
        REQUEST,
    ),
    # -- files and reports on the master ------------------------------------------------------------------
    Place(
        r"reports|indirector/report|transaction/report|util/metric|reports\.rb",
        "a report processor of the master, or the agent's own report",
        "after the catalog was applied",
        ANSWER,
    ),
    Place(
        r"file_serving|indirector/(?:file_content|file_metadata|file_server|direct_file|facts/file)|fileserver",
        "the master's file server",
        "when an agent asks for files",
        ANSWER,
    ),
    Place(
        r"file_bucket|indirector/file_bucket|network/client/dipper",
        "the filebucket, on a node or the master",
        "when a file is backed up or restored",
        REQUEST,
    ),
    # -- applying -----------------------------------------------------------------------------------------
    Place(
        r"type/file/(?:source|content|checksum)",
        "the agent's type file",
        _APPLYING,
        "about the source of a file, which the master or a web server may serve",
    ),
    Place(
        r"type/|metatype|parameter|property|type\.rb",
        "a resource's type on the node",
        f"when it converts or {_APPLYING[9:]}",
        LOCAL,
    ),
    Place(
        r"provider|confine|util/(?:package|rpm|filetype|fileparsing|inifile|selinux|suidmanager|posix|adsi|execution|"
        r"plist|symbolic|user_attr|libuser|windows|network_device|nagios|feature|rubygems|provider)|feature|ffi",
        "a resource's provider on the node",
        _APPLYING,
        LOCAL,
    ),
    Place(
        r"transaction|graph|simple_graph|relationship|resource/catalog|rb_tree_map|resource\.rb|resource/|util/tag|"
        r"indirector/resource|compilable",
        "the agent's transaction",
        _APPLYING,
        LOCAL,
    ),
    # -- commands -----------------------------------------------------------------------------------------
    Place(r"(?:application|face)/(?:master|queue)", "the command `puppet master`", "when it starts", UNSEEN),
    Place(
        r"application/(?:agent|agents|device)",
        "the command `puppet agent` (or `puppet device`)",
        "when it starts",
        LOCAL,
    ),
    Place(r"application/ssl", "the command `puppet ssl`", "when it is called", CALL),
    Place(
        r"(?:application|face)/(?:cert|ca)(?:ificate\w*)?\W",
        "the command `puppet cert` (up to version 5)",
        "when it is called",
        CALL,
    ),
    Place(r"application/apply", "the command `puppet apply`", "when it compiles and applies a catalog", OWN),
    Place(
        r"application/(?:config|filebucket|lookup|resource|describe|doc|facts|node|script|parser|module)|face|"
        r"module_tool|forge|interface|application|util/command_line|util/help|reference|util/rdoc|util/reference|"
        r"util/docs|generate|string|plugins|gettext",
        "a command of Puppet",
        "when it is called",
        OWN,
    ),
    # -- everywhere ---------------------------------------------------------------------------------------
    Place(
        r"settings|defaults|util/settings|util/run_mode|test|config|util/constant",
        "the settings (puppet.conf) of an agent or a master",
        "when it starts",
        LOCAL,
    ),
    Place(r"indirector|store_configs", "an agent or a master", "when a request is answered, sent or stored", REQUEST),
    Place(r"util/(?:log|logging|errors|warnings)", "the log of an agent or a master", "at any time", LOCAL),
    Place(r"", "an agent or a master", "at any time", LOCAL),
)
"""Of ``lib/puppet/``: the first that fits."""

_SERVER = (
    Place(
        r"(?:src/clj/)?puppetlabs/puppetserver/(?:certificate_authority|ringutils)|.*services/ca/",
        "the CA service of the master",
        "when a certificate is requested, signed or revoked, or when it starts",
        ANSWER,
    ),
    Place(r".*jruby", "the master's pool of JRuby instances", "when it starts or answers a request", UNSEEN),
    Place(
        r".*services/master|.*request_handler|.*ring", "the master's HTTP layer", "when it answers a request", ANSWER
    ),
    Place(
        r".*versioned_code|.*file_sync",
        "the master's service of static catalogs",
        "when it compiles or serves code",
        UNSEEN,
    ),
    Place(
        r".*(?:cli|bootstrap|config|common|puppet_admin|legacy_routes|profiler|analytics)",
        "the master",
        "when it starts",
        UNSEEN,
    ),
    Place(r".*ruby.*compiler", "the master's compiler", _COMPILING, COMPILED),
    Place(
        r".*http_client",
        "the master's HTTP client",
        "when it sends a request to another service",
        "about a request of the master to PuppetDB, a report's receiver or another service",
    ),
    Place(r"", "the master", "when it starts or answers a request", UNSEEN),
)
_TOOL = (
    Place(
        r".*action/(?:setup|import|migrate|enable|prune|delete)",
        "the tool `puppetserver ca`",
        "when it changes the CA's files",
        "it sends no request",
    ),
    Place(
        r".*(?:local_certificate_authority|x509_loader|config|host|master|utils/(?:file|config|inventory|signing))",
        "the tool `puppetserver ca`",
        "when it reads or writes the CA's files",
        "it sends no request",
    ),
    Place(r"", "the tool `puppetserver ca`", "when it is called", CALL),
)
_DB = (
    Place(
        r".*(?:/http/|middleware|query)",
        "PuppetDB",
        "when it answers a query or takes a command",
        "the master or another client receives it in the answer",
    ),
    Place(
        r".*(?:command|queue|scf|storage|jdbc)",
        "PuppetDB",
        "when it stores catalogs, facts and reports",
        "only in PuppetDB's log",
    ),
    Place(r"", "PuppetDB", "when it starts or is maintained", "only in PuppetDB's log"),
)
_FACTER = (
    Place(
        r".*(?:custom|external|ruby|util/(?:parser|loader|fact|resolution|confine|directory_loader))",
        "Facter, about a custom or external fact",
        "when facts are gathered",
        LOCAL,
    ),
    Place(r"", "Facter", "when facts are gathered", LOCAL),
)
_BOTH = "Puppet Server or PuppetDB"
PLACES = {
    "Puppet": _PUPPET,
    "Facter": _FACTER,
    "Hiera": (Place(r"", "the master's lookup of data (Hiera)", _COMPILING, COMPILED),),
    "resource API": (Place(r"", "the agent's resource API", _APPLYING, LOCAL),),
    "versions": (Place(r"", "an agent or a master", "when it compares versions of modules", LOCAL),),
    "Puppet Server": _SERVER,
    "puppetserver ca": _TOOL,
    "PuppetDB": _DB,
    "terminus": (
        Place(r".*face|.*application", "the command `puppet node`", "when it is called", STORED),
        Place(r".*config", "the PuppetDB terminus of the master", "when it reads puppetdb.conf", STORED),
        Place(r"", "the PuppetDB terminus of the master", "when it stores or queries", STORED),
    ),
    "trapperkeeper": (Place(r"", _BOTH, "when it starts or stops", UNSEEN),),
    "authorization": (
        Place(r".*(?:ring_middleware|rules)", "the authorization (auth.conf) of Puppet Server or PuppetDB",
              "when it answers a request", ANSWER),
        Place(r"", "the authorization (auth.conf) of Puppet Server or PuppetDB", "when it starts", UNSEEN),
    ),
    "web server": (Place(r"", f"the web server of {_BOTH}", "when it starts or accepts connections", UNSEEN),),
    "JRuby": (Place(r"", "the master's pool of JRuby instances", "when it starts or answers a request", UNSEEN),),
    "HTTP client": (Place(r"", f"the HTTP client of {_BOTH}", "when it sends a request to another service", UNSEEN),),
    "ring": (Place(r"", f"the HTTP layer of {_BOTH}", "when it answers a request", ANSWER),),
    "TLS": (Place(r"", f"the certificates and keys of {_BOTH}", "when it starts or signs", UNSEEN),),
}  # fmt: skip


def place(program: str, path: str, scope: str) -> Place:
    """Return the place of what a function (or nothing, for the file's own code) in a file prints."""
    within = f"{path.removeprefix(_LIB).removeprefix('lib/')} {scope}"
    return next(place for place in PLACES[program] if re.match(place.paths, within))
