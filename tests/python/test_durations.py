"""Times as the package and both shims read them: one reader, and the command line means the same by each."""

import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from hpcbatch import durations  # noqa: E402

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    "text, seconds",
    [
        ("90", 5400),
        ("0.5", 30),
        (" 90 ", 5400),
        ("90s", 90),
        ("1.5h", 5400),
        ("1d12h", 36 * 3600),
        ("1h 30min", 5400),
        ("500ms", 0.5),
        ("10:30", 630),
        ("1:30:00", 5400),
        ("100:00:00", 360_000),
        ("2-12", 60 * 3600),
        ("2-12:30", 60 * 3600 + 1800),
        ("1-0:0:30", 86_430),
        ("0", 0),
        *((text, None) for text in ("", "soon", "1h later", "x1h", "1h30", "-5", "1:2:3:4", "1-", "1:", "1,5h", "inf")),
    ],
)
def test_a_time_is_read(text, seconds):
    assert durations.seconds(text, 60) == seconds


def test_a_wall_time_has_colons():
    assert durations.walltime_s("01:30:00") == durations.walltime_s("90:00") == 5400
    assert durations.walltime_s("1-00:00") == 86_400
    for text in ("90", "1h", "1:2:3:4", "soon"):
        with pytest.raises(ValueError, match="no duration"):
            durations.walltime_s(text)
