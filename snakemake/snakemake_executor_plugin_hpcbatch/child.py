"""Snakemake for one job, as the executor starts it: warm, forked by a service, or anew.

    python -m snakemake_executor_plugin_hpcbatch.child ARGUMENTS OF SNAKEMAKE

It ends when Snakemake has ended.  Snakemake's own program waits for a timer as well, which paces the start of jobs and
here has nothing left to pace: a second for every job.
"""

import atexit
import os
import sys


def main():
    from snakemake.cli import main as snakemake

    code = 0
    try:
        snakemake(sys.argv[1:])
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = 0 if end.code is None else end.code if isinstance(end.code, int) else 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code & 0xFF)


if __name__ == "__main__":
    main()
