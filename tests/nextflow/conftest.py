import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "system")]

from slurm_site import slurm  # noqa: E402, F401
