"""The traffic inspector as a mitmproxy addon: ``mitmdump -s addons/puppet.py``."""

import sys
from pathlib import Path

# In a checkout mitmproxy puts only this file's own directory on the path (and takes it off again).
_ROOT = Path(__file__).resolve().parent.parent
if (_ROOT / "inspector" / "proxy" / "mitm" / "addon.py").is_file() and str(_ROOT) not in sys.path:
    sys.path.insert(0, str(_ROOT))

from inspector.proxy.mitm.addon import PuppetInspector  # noqa: E402

addons = [PuppetInspector()]
