"""How long tests wait for what other processes do: by a clock that goes slower where the machine is shared by many."""

import os
import time

# How slow the machine was when the run began (tests/runner/speed.py); 1 where a test runs by itself.
SLOWNESS = float(os.environ.get("HPCBATCH_TEST_SLOWNESS", 1))

RAREST_LOOK = 0.25

# A machine that is busier than this is no place to test on.
MOST_CROWDED = 8


def share_of_the_machine():
    """Which part of a processor each process that wants one has, as the load of the last minute tells: at most 1."""
    crowd = os.getloadavg()[0] / (os.cpu_count() or 1)
    return 1 / min(max(crowd, 1), MOST_CROWDED)


def patience(seconds):
    """How long a program may take that takes at most so many seconds on an idle machine."""
    return seconds * SLOWNESS / share_of_the_machine()


def wait_until(condition, seconds=60, what="the condition", every=0.02):
    """Waits for what another process will do; a condition that stays false fails the test.

    `seconds` are those of an idle machine, and a minute at least. Looks the more rarely the longer it has waited: a look is often a
    program, and takes the processor from what it waits for.
    """
    left = max(seconds, 60) * SLOWNESS
    began = at = time.monotonic()
    while not (value := condition()):
        assert left > 0, f"{what} was not true within {at - began:.0f} s, {seconds} s of an idle machine"
        time.sleep(max(every, min((at - began) / 10, RAREST_LOOK)))
        before, at = at, time.monotonic()
        left -= (at - before) * share_of_the_machine()
    return value
