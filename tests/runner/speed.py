"""How slow this machine is now, as a factor that waits are stretched by."""

import concurrent.futures
import os
import statistics
import subprocess
import time

# Starts of a program a second that two idle cores come to, a worker a core.
USUAL_STARTS = 1000
MOST = 8.0


def slowness():
    """1 on an idle machine of two cores or a faster one, 4 where a program takes four times as long to start; 8 at most."""
    workers = os.cpu_count() or 1
    return min(max(USUAL_STARTS / statistics.median(_starts_a_second(workers) for _ in range(5)), 1.0), MOST)


def _starts_a_second(workers, count=100):
    def start(_):
        subprocess.run(["/bin/true"], stdin=subprocess.DEVNULL, check=True)

    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(start, range(count)))
    return count / (time.monotonic() - begin)
