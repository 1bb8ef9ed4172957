"""Calls of Python functions through several executors, each measured in a Python of its own, and what is said of them."""

import json
import subprocess

from common import results
from common.private_engine import ROOT

SCRIPT = ROOT / "bench/helpers/calls.py"


def measured(python, name, environment, chosen):
    """What helpers/calls.py found."""
    command = [python, SCRIPT, name, str(chosen.rounds), str(chosen.seconds)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True, timeout=300)
    return json.loads(done.stdout.splitlines()[-1])


def figures(found, budgets):
    """`found`: of each executor one answer of `measured` a run, ours under "hpcbatch". `budgets`: of (milliseconds, executor beside
    us) a text and a function of our calls/s and the ratio that says whether it holds."""
    ours, told = found["hpcbatch"], []
    beside_us = [name for name in found if name != "hpcbatch"]
    for milliseconds in ("0", "1", "10"):
        rates = {name: [rate for run in runs for rate in run[milliseconds]] for name, runs in found.items()}
        for beside in beside_us:
            ratio = results.median_ratio(rates["hpcbatch"], rates[beside])
            text, holds = budgets.get((milliseconds, beside), ("", None))
            told.append(
                results.Figure(
                    f"calls of {milliseconds} ms",
                    "calls/s",
                    rates["hpcbatch"],
                    f"calls/s of {beside}",
                    rates[beside],
                    ratio,
                    text,
                    holds and holds(results.median(rates["hpcbatch"]), ratio),
                )
            )
    for key, what, unit in (("first", "the first result", "s"), ("batch_jobs", "batch jobs", "used")):
        for beside in beside_us:
            if key in ours[0]:
                of_us, of_them = [run[key] for run in ours], [run[key] for run in found[beside]]
                told.append(
                    results.Figure(
                        what, unit, of_us, f"{unit}, {beside}", of_them, results.median_ratio(of_us, of_them)
                    )
                )
    return told
