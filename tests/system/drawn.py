"""Of a long list of cases a commit draws a few: all have their turn in a week of commits, and none makes each commit wait."""

import os
import pathlib
import random
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def drawn(cases, count=5):
    """So many of the cases, in their order, the same ones for one commit; all with HPCBATCH_LONG (`./dev test --long`)."""
    cases = list(cases)
    if os.environ.get("HPCBATCH_LONG") or len(cases) <= count:
        return cases
    chosen = random.Random(_commit() + repr(cases)).sample(range(len(cases)), count)
    return [cases[at] for at in sorted(chosen)]


def _commit():
    """That of the run, which may be another than the checkout's by now: what runs again must be what ran."""
    said = os.environ.get("HPCBATCH_TEST_COMMIT")
    return (
        said
        or subprocess.run(
            ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
        ).stdout.strip()
    )
