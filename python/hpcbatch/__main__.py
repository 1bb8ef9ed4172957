"""`python -m hpcbatch` is the program `hpcbatch` that this Python's package finds."""

from __future__ import annotations

import os
import sys

from .client import Error, find_program


def main() -> int:
    try:
        program = find_program()
        os.execv(program, ["hpcbatch", *sys.argv[1:]])
    except (Error, OSError) as error:
        print(f"hpcbatch: {error}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
