"""Catalogs that are not compiled, not given or not applied, files that are not served, reports that are not taken."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from tests.real.faults.engine import Fault

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.faults.engine import Scene

COMPILE, DATA, CLASSIFIER = "compile", "data", "classifier"
ENVIRONMENT, PLUGINS, FILES, REPORT, ACCESS = "environment", "plugins", "files", "report", "auth.conf"


def _manages(code: str) -> Callable[[Scene], None]:
    return lambda scene: scene.manage(code)


def _syntax_error(scene: Scene) -> None:
    scene.edit(scene.master.environment / "manifests/broken.pp", "node 'x' {\n  file { '/x' ensure => file }\n}\n")


def _module(scene: Scene, path: str, content: str) -> None:
    scene.edit(scene.master.environment / "modules/demo" / path, content)


def _without_version(scene: Scene) -> None:
    """Versioned code whose first command prints nothing."""
    base = scene.master.confdir
    scripts = {"code-id": "", "code-content": f'exec cat "{scene.master.environment}/$3"'}
    scene.later(scene.master.reload)
    for name, script in scripts.items():
        scene.edit(base / name, f"#!/bin/sh\n{script}\n")
        (base / name).chmod(0o755)
    versioned = {f"{name}-command": f"{base}/{name}" for name in scripts}
    scene.edit(base / "conf.d/versioned-code.conf", json.dumps({"versioned-code": versioned}))
    scene.edit(scene.master.environment / "modules/demo/files/versioned.txt", "of a version\n")
    scene.manage(f"file {{ '{scene.agent.base}/versioned.txt': source => 'puppet:///modules/demo/versioned.txt' }}")
    scene.master.reload()


def _broken_function(scene: Scene) -> None:
    _module(scene, "lib/puppet/functions/demo/broken.rb", "Puppet::Functions.create_function(:'demo::broken') do\n")
    scene.manage("notice(demo::broken())")


def _template(scene: Scene) -> None:
    _module(scene, "templates/broken.erb", "<%= @nothing.fetch(1) %>\n")
    scene.manage("notice(template('demo/broken.erb'))")


def _hiera(scene: Scene, data: str) -> None:
    environment = scene.master.environment
    scene.edit(environment / "hiera.yaml", "version: 5\nhierarchy:\n  - name: all\n    path: all.yaml\n")
    scene.edit(environment / "data/all.yaml", data)
    scene.manage("notice(lookup('demo::role'))")


def _hiera_broken(scene: Scene) -> None:
    _hiera(scene, "demo::role: [web\nother: {\n")


def _hiera_empty(scene: Scene) -> None:
    _hiera(scene, "demo::other: web\n")


def _hiera_backend(scene: Scene) -> None:
    """Encrypted data, for which the master has no key (or not even the program)."""
    _hiera(scene, "demo::role: ENC[PKCS7,MIIB]\n")
    conf = "version: 5\nhierarchy:\n  - name: all\n    lookup_key: eyaml_lookup_key\n    path: all.yaml\n"
    scene.edit(scene.master.environment / "hiera.yaml", conf + "    options:\n      pkcs7_private_key: /nowhere\n"
               "      pkcs7_public_key: /nowhere\n")  # fmt: skip


def _classifier(scene: Scene, script: str) -> None:
    path = scene.master.confdir / "enc"
    scene.edit(path, f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    scene.configure_master(node_terminus="exec", external_nodes=path)


def _classifier_fails(scene: Scene) -> None:
    _classifier(scene, "echo 'the inventory is down' >&2; exit 1")


def _classifier_prints_something(scene: Scene) -> None:
    _classifier(scene, "echo '<html>: {[sign in'")


def _classifier_names_no_environment(scene: Scene) -> None:
    _classifier(scene, "echo '{environment: nowhere, classes: []}'")


def _environment(scene: Scene) -> None:
    scene.configure(environment="nowhere")


def _puppetdb(scene: Scene) -> None:
    scene.configure_master(storeconfigs="true", storeconfigs_backend="puppetdb")


def _access(scene: Scene, path: str) -> None:
    """Nobody may ask for what is below this path."""
    conf = scene.master.confdir / "conf.d/auth.conf"
    rule = {"name": "nobody", "sort-order": 1, "deny": "*", "match-request": {"path": path, "type": "path"}}
    text = conf.read_text()
    scene.later(scene.master.reload)
    scene.edit(conf, text.replace("rules: [", f"rules: [\n{json.dumps(rule)},", 1))
    scene.master.reload()


def _catalog_refused(scene: Scene) -> None:
    _access(scene, "/puppet/v3/catalog")


def _report_refused(scene: Scene) -> None:
    _access(scene, "/puppet/v3/report")


def _mount(scene: Scene, name: str) -> None:
    scene.manage(f"file {{ '{scene.agent.base}/{name}': source => 'puppet:///{name}/a' }}")


def _mount_refused(scene: Scene) -> None:
    _access(scene, "/puppet/v3/file_metadata/secure")
    _mount(scene, "secure")


def _strict_mode(scene: Scene) -> None:
    """The ENC assigns an environment of its own, and the agent takes only the one that it asked for."""
    _classifier(scene, "echo '{environment: staging, classes: []}'")
    scene.edit(scene.master.environment.with_name("staging") / "manifests/site.pp", "notify { 'staging': }\n")
    scene.configure(strict_environment_mode="true")


def _fact_fails(scene: Scene) -> None:
    _module(scene, "lib/facter/demo_role.rb", "Facter.add(:demo_role) { setcode { raise 'no role' } }\n")


def _fact_with_a_syntax_error(scene: Scene) -> None:
    _module(scene, "lib/facter/demo_role.rb", "Facter.add(:demo_role) { setcode {\n")


def _type_with_a_syntax_error(scene: Scene) -> None:
    _module(scene, "lib/puppet/type/demo_thing.rb", "Puppet::Type.newtype(:demo_thing) do\n  newparam(:name,\n")
    scene.manage("demo_thing { 'x': }")


def _processor_fails(scene: Scene) -> None:
    code = "Puppet::Reports.register_report(:demo_fails) { def process; raise 'full'; end }"
    _module(scene, "lib/puppet/reports/demo_fails.rb", f"require 'puppet'\n{code}\n")
    scene.configure_master(reports="store,demo_fails")


def _content_changes(scene: Scene) -> None:
    scene.manage(f"file {{ '{scene.agent.base}/no/such/directory/file': content => 'x' }}")


def _module_unreadable(scene: Scene) -> None:
    """Deployed by somebody whose umask lets nobody else read it."""
    _module(scene, "metadata.json", '{"name": "demo-demo", "version": "1.0.0", "dependencies": []}\n')
    path = scene.master.environment / "modules/demo/metadata.json"
    shutil.chown(path, "root", "root")
    path.chmod(0o600)
    scene.manage("notify { 'x': }")


def _deferred_in_string(scene: Scene) -> None:
    deferred = "Deferred('sprintf', ['secret'])"
    scene.manage(f"$secret = {deferred}\nexec {{ \"/bin/false '${{secret}}'\": }}")


def _keyword_unknown(scene: Scene) -> None:
    code = (
        "Puppet::Functions.create_function(:'demo::call') do\n  dispatch(:call) { }\n"
        "  def call; Comparable.instance_method(:clamp); helper(namespace: 1); end\n  def helper(name: 1); end\nend\n"
    )
    _module(scene, "lib/puppet/functions/demo/call.rb", code)
    scene.manage("notice(demo::call())")


_CODE = "correct the code"
FAULTS = (
    Fault(name="a class that does not exist", kind=COMPILE, make=_manages("include nowhere"), cause="S01",
          corrects=_CODE),
    Fault(name="a syntax error in a manifest", kind=COMPILE, make=_syntax_error, cause="S01", corrects=_CODE),
    Fault(name="a parameter of the wrong type", kind=COMPILE, cause="S01", corrects=_CODE,
          make=_manages("class { 'demo': target => 1, notice => false }")),
    Fault(name="a duplicate declaration", kind=COMPILE, cause="S01", corrects=_CODE,
          make=_manages("notify { 'x': }\nnotify { 'x': }")),
    Fault(name="a function that does not exist", kind=COMPILE, make=_manages("notice(nowhere(1))"), cause="S01",
          corrects=_CODE),
    Fault(name="a function with a syntax error", kind=COMPILE, make=_broken_function, cause="S01", corrects=_CODE),
    Fault(name="a template that raises", kind=COMPILE, make=_template, cause="S01", corrects=_CODE),
    Fault(name="a type with a syntax error", kind=PLUGINS, make=_type_with_a_syntax_error, cause="S01", corrects=_CODE),
    Fault(name="a module whose files the server may not read", kind=COMPILE, make=_module_unreadable, cause="S01"),
    Fault(name="a module's Ruby code in two versions", kind=COMPILE, make=_keyword_unknown, cause="S01",
          corrects="restart the server"),
    Fault(name="a Deferred in a string", kind="resources", make=_deferred_in_string, cause="P18",
          corrects="pass the Deferred as the whole value", ends=(4, 6)),
    Fault(name="a dependency cycle", kind=COMPILE, cause="P15", corrects="cycle",
          make=_manages("notify { 'x': require => Notify['y'] }\nnotify { 'y': require => Notify['x'] }")),
    Fault(name="a data file that is no YAML", kind=DATA, make=_hiera_broken, cause="S27",
          corrects="data file"),
    Fault(name="a key without a value", kind=DATA, make=_hiera_empty, cause="S27", corrects="data file"),
    Fault(name="encrypted data that the master cannot read", kind=DATA, make=_hiera_backend, cause="S27",
          corrects="install the gem in the server"),
    Fault(name="the ENC ends with 1", kind=CLASSIFIER, make=_classifier_fails, cause="S25",
          corrects="print YAML"),
    Fault(name="the ENC prints no YAML", kind=CLASSIFIER, make=_classifier_prints_something, cause="S25",
          corrects="print YAML"),
    Fault(name="the ENC names an environment that does not exist", kind=CLASSIFIER,
          make=_classifier_names_no_environment, cause="S26", corrects="ENC"),
    Fault(name="PuppetDB's terminus is missing", kind=DATA, make=_puppetdb, cause="S28",
          corrects="puppetdb-termini"),
    Fault(name="the agent's environment does not exist", kind=ENVIRONMENT, make=_environment, cause="R09",
          fill=(("<name>", "production"),), ends=(0, 1, 2)),
    Fault(name="auth.conf refuses the catalog", kind=ACCESS, make=_catalog_refused, cause="S02",
          corrects="auth.conf"),
    Fault(name="auth.conf refuses the report", kind=ACCESS, make=_report_refused, cause="S02",
          corrects="auth.conf", ends=(0, 1, 2)),
    Fault(name="auth.conf refuses a mount", kind=ACCESS, make=_mount_refused, cause="S02",
          corrects="auth.conf", ends=(1, 4, 6)),
    Fault(name="the agent insists on another environment", kind=ENVIRONMENT, make=_strict_mode, cause="R07",
          true=("it is on",), ends=(1, 2)),
    Fault(name="a mount that the master does not have", kind=FILES, make=lambda scene: _mount(scene, "nowhere"),
          cause="F18", corrects="into fileserver.conf", ends=(1, 4, 6)),
    Fault(name="code-id-command prints nothing", kind=FILES, make=_without_version, cause="F09",
          corrects="let code-id-command print", ends=(1, 4, 6)),
    Fault(name="a file's source is missing", kind=FILES, cause="F02", corrects="into the module's",
          make=lambda s: s.manage(f"file {{ '{s.agent.base}/x': source => 'puppet:///modules/demo/absent' }}"),
          ends=(1, 4, 6)),
    Fault(name="a directory is missing on the node", kind="resources", make=_content_changes, cause="P01",
          corrects="manage the directory too", ends=(4, 6)),
    Fault(name="a command fails", kind="resources", cause="P01", make=_manages("exec { '/bin/false': }"),
          corrects="correct the command", ends=(4, 6)),
    Fault(name="a custom fact raises", kind=PLUGINS, make=_fact_fails, cause="A fact could not be found out",
          looks=("explain",), corrects="Correct the fact", ends=(0, 2)),
    Fault(name="a custom fact with a syntax error", kind=PLUGINS, make=_fact_with_a_syntax_error,
          cause="A fact could not be found out", looks=("explain",), corrects="Correct the fact", ends=(0, 2)),
    Fault(name="a report processor raises", kind=REPORT, make=_processor_fails, cause="", ends=(0, 2)),
)  # fmt: skip
