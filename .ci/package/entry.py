"""What the one-file build starts: the command line, or another process of it (``inspector.installation.command``)."""

import importlib
import os
import sys

from inspector import installation

# The libraries of this build are for its own processes, not for the puppet that `run` starts.
if (before := os.environ.pop("LD_LIBRARY_PATH_ORIG", None)) is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = before

if sys.argv[1:2] == [installation.PROCESS]:
    module, sys.argv[1:] = sys.argv[2], sys.argv[3:]
    sys.exit(importlib.import_module(module).main(sys.argv[1:]))
from inspector.cli.__main__ import main

sys.exit(main())
