"""`lpgnn`, also as `python -m lpgnn_cli`."""

import signal
import sys


def program() -> int:
    # Until signals are listened to: the end at once, rather than a traceback of what is imported.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from lpgnn_cli import cli

    return cli.program()


if __name__ == "__main__":
    sys.exit(program())
