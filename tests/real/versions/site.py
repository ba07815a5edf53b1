"""What the masters of the matrix serve, the same in every version: nodes by what their names contain."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

from tests.real.puppet import RealMaster
from tests.real.site import DEMO_MODULE

if TYPE_CHECKING:
    from pathlib import Path

ENVIRONMENTS = ("production", "testing", "static", "plugged")
"""``static`` has versioned code, ``plugged`` plugins of every kind."""
NAP = 14
"""Seconds that the catalog of a node with "slow" in its name takes to compile."""
_DEMO = "class { 'demo': target => $facts['target'], notice => false }"
_NODES = {
    "default": _DEMO,
    "/compile-error/": "fail('no role for this node')",
    "/slow/": f"slow::nap({NAP})\n{_DEMO}",
    "/file-missing/": _DEMO + "\nfile { \"${facts['target']}/a.txt\": source => 'puppet:///modules/demo/absent.txt' }",
    "/file-unreadable/": _DEMO
    + "\nfile { \"${facts['target']}/b.txt\": source => 'puppet:///modules/demo/unreadable.txt' }",
}
_FUNCTION = b"""Puppet::Functions.create_function(:'slow::nap') do
  dispatch(:nap) { param 'Integer', :seconds }
  def nap(seconds)
    sleep seconds
  end
end
"""
PLUGINS: dict[str, bytes] = {
    "lib/facter/plugged.rb": b"Facter.add(:plugged) { setcode { 'one' } }\n",
    "facts.d/rack.yaml": b"rack: A7\n",
    "lib/puppet/functions/plugged/twice.rb": b"""Puppet::Functions.create_function(:'plugged::twice') do
  dispatch(:twice) { param 'String', :word }
  def twice(word)
    word + word
  end
end
""",
    "lib/puppet/type/plugged.rb": b"""Puppet::Type.newtype(:plugged) do
  ensurable
  newparam(:name, namevar: true)
end
""",
    "lib/puppet/provider/plugged/ruby.rb": b"""Puppet::Type.type(:plugged).provide(:ruby) do
  def exists?
    true
  end
end
""",
    "lib/augeas/lenses/plugged.aug": b"module Plugged =\n",
    "locales/de/plugged.po": b'msgid ""\nmsgstr ""\n',
}
"""Of the module ``plugged``, whose path in the environment is that of the module."""
_CODE_ID = "#!/bin/sh\necho release-1\n"
_CODE_CONTENT = '#!/bin/sh\nexec cat "{}/code/environments/$1/$3"\n'
_CLASSIFIER = """#!/bin/sh
case "$1" in
  *of-the-classifier*) printf 'classes: {}\\nenvironment: testing\\n' ;;
  *) printf 'classes: {}\\n' ;;
esac
"""


class SiteMaster(RealMaster):
    """A master with a site of several environments, versioned code and a classifier."""

    def _configure(self) -> None:
        super()._configure()
        base = self.confdir
        commands = {"code-id": _CODE_ID, "code-content": _CODE_CONTENT.format(base), "classifier": _CLASSIFIER}
        for name, script in commands.items():
            (base / name).write_text(script)
            (base / name).chmod(0o755)
        versioned = {"code-id-command": f"{base}/code-id", "code-content-command": f"{base}/code-content"}
        (base / "conf.d/versioned-code.conf").write_text(json.dumps({"versioned-code": versioned}))
        with (base / "puppet.conf").open("a") as conf:
            conf.write(f"node_terminus = exec\nexternal_nodes = {base}/classifier\n")
        for environment in ENVIRONMENTS:
            self._fill(self.environment.parent / environment)
        self.give_to_puppet(base)

    def _fill(self, environment: Path) -> None:
        shutil.rmtree(environment, ignore_errors=True)
        files = {f"modules/demo/{path}": content for path, content in DEMO_MODULE.items()}
        files["modules/slow/lib/puppet/functions/slow/nap.rb"] = _FUNCTION
        files["modules/demo/files/unreadable.txt"] = b"for nobody\n"
        if environment.name == "plugged":
            files |= {f"modules/plugged/{path}": content for path, content in PLUGINS.items()}
        for name, code in _NODES.items():
            files[f"manifests/{name.strip('/')}.pp"] = f"node {name} {{\n{code}\n}}\n".encode()
        if environment.name != "static":
            files["environment.conf"] = b"static_catalogs = false\n"
        for path, content in files.items():
            place = environment / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        (environment / "modules/demo/files/unreadable.txt").chmod(0)
