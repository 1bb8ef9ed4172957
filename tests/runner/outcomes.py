"""What became of the tests of a run: one JSON object a line in a file, read back for what runs again and for the summary.  Pure."""

import collections
import json
import re

# More failures than these are no bad luck.
MOST_UNLUCKY = 10
# What a test says that saw a promise broken; it never gets a second chance.
BROKEN_PROMISE = re.compile(r"\b(lost|twice|more than once|corrupt\w*|damaged|doubled|broken promise)\b", re.IGNORECASE)

Test = collections.namedtuple("Test", "name outcome seconds words")


def line_of(report, name):
    """One phase (setup, call, teardown) of the test, as pytest reports it."""
    crash = getattr(report.longrepr, "reprcrash", None)
    words = getattr(crash, "message", None) or str(report.longrepr or "")
    return json.dumps(
        {
            "test": name,
            "phase": report.when,
            "outcome": report.outcome,
            "seconds": round(report.duration, 3),
            "words": words[:2000] if report.failed else "",
        }
    )


def read(lines):
    """The tests of a run in the order of their end, a Test each; a test that ran twice counts as it did last."""
    phases = {}
    for line in lines:
        phase = json.loads(line)
        if phase["phase"] == "setup":
            phases.pop(phase["test"], None)
        phases.setdefault(phase["test"], []).append(phase)
    return [_test_of(name, those) for name, those in phases.items()]


def _test_of(name, phases):
    outcomes = [phase["outcome"] for phase in phases]
    outcome = next((one for one in ("failed", "skipped") if one in outcomes), "passed")
    words = "\n".join(phase["words"] for phase in phases if phase["words"])
    return Test(name, outcome, sum(phase["seconds"] for phase in phases), words)


def says_broken(test):
    """Whether the test's name, or the first line of what failed, is about work that was lost or done twice."""
    return bool(BROKEN_PROMISE.search(f"{test.name.replace('_', ' ')}\n{test.words.strip().partition(chr(10))[0]}"))


def to_run_again(tests):
    """Those that failed and may have been unlucky; none where it is too many, or where one of them saw a promise broken."""
    failed = [test for test in tests if test.outcome == "failed"]
    if len(failed) > MOST_UNLUCKY or any(says_broken(test) for test in failed):
        return []
    return failed


def bed_of(test):
    """What a test is counted under: the folder of tests/, and of tests/system what its file is about."""
    match = re.match(r"(?:tests/)?(?P<folder>\w+)/(?:test_(?P<about>[a-z]+))?", test.name)
    folder, about = (match["folder"], match["about"]) if match else ("?", None)
    return f"{folder}/{about}" if folder == "system" and about else folder


def seconds_by_bed(tests):
    """[(bed, seconds, how many tests)], the dearest first."""
    beds = collections.defaultdict(lambda: [0.0, 0])
    for test in tests:
        beds[bed_of(test)][0] += test.seconds
        beds[bed_of(test)][1] += 1
    return sorted(((bed, seconds, count) for bed, (seconds, count) in beds.items()), key=lambda row: -row[1])


def slowest(tests, count=10):
    return sorted(tests, key=lambda test: -test.seconds)[:count]
