"""Standard output that only the protocol writes to."""

import os
import sys
from io import TextIOWrapper


def claim_stdout() -> TextIOWrapper:
    """Return a stream to the client, and send all else that is printed to standard error.

    A line that any library or child process prints would break the protocol.
    """
    sys.stdout.flush()
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return TextIOWrapper(stream, encoding="utf-8")
