"""tests/unsteady.md: the tests that bad luck has failed, and how many of them are bearable.  As a program: says what is wrong with the
page today, and exits 1 where anything is."""

import collections
import datetime
import pathlib
import re
import sys

PAGE = pathlib.Path(__file__).resolve().parents[1] / "unsteady.md"

MOST_ROWS = 5
OLDEST_DAYS = 7

Row = collections.namedtuple("Row", "test seen commit date")
_ROW = re.compile(r"^\|\s*`?(?P<test>[^|`]+?)`?\s*\|(?P<seen>[^|]*)\|(?P<commit>[^|]*)\|(?P<date>[^|]*)\|\s*$")


def rows_of(text):
    """The rows of the page's table; raises ValueError for a row that has no date."""
    rows = []
    for line in text.splitlines():
        found = _ROW.match(line)
        if not found or found["test"] == "test" or set(found["test"]) <= set("-: "):
            continue
        try:
            date = datetime.date.fromisoformat(found["date"].strip())
        except ValueError:
            raise ValueError(f"'{found['date'].strip()}' is no date such as 2026-11-28: {line}") from None
        rows.append(Row(found["test"], found["seen"].strip(), found["commit"].strip(), date))
    return rows


def complaints(rows, today):
    """What forbids to hand in: too many tests are unsteady, or one has been for too long."""
    said = []
    if len(rows) > MOST_ROWS:
        said.append(f"{len(rows)} tests are unsteady, {MOST_ROWS} at most are bearable: find the causes of some")
    for row in rows:
        if (days := (today - row.date).days) > OLDEST_DAYS:
            said.append(
                f"{row.test} has been unsteady for {days} days, {OLDEST_DAYS} at most are bearable: find its cause"
            )
    return said


def main():
    try:
        said = complaints(rows_of(PAGE.read_text()), datetime.date.today())
    except ValueError as error:
        said = [str(error)]
    for line in said:
        print(f"tests/unsteady.md: {line}", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
