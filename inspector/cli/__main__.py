"""The program: until the command line is read, Ctrl-C ends it without a word."""

import gc
import signal


def main() -> int:
    """Run it; return its exit status."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()  # until the command is imported: code has no garbage, and looking for it was a quarter of a start
    try:
        from inspector.cli.main import main as run

        return run()
    finally:
        gc.enable()


if __name__ == "__main__":
    raise SystemExit(main())
