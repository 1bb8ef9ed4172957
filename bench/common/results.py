"""What a benchmark says: one JSON object per figure, or a line of a table."""

import argparse
import dataclasses
import json
import re
import statistics


@dataclasses.dataclass
class Figure:
    """`values` are one per repetition, at least five where the machine's noise matters; the median counts. `reference` is what
    was measured beside it, `ratio` how the two compare, `budget` what is asked for, as text, and `holds` whether it is met.
    """

    name: str
    unit: str
    values: list
    reference_name: str = ""
    reference: list = dataclasses.field(default_factory=list)
    ratio: float | None = None
    budget: str = ""
    holds: bool | None = None

    @property
    def value(self):
        return statistics.median(self.values)

    @property
    def short_by(self):
        """The part of its budget by which it misses it; none where it holds, or the budget is no number."""
        limit = re.search(r"([<>])= ([\d,]+(?:\.\d+)?)", self.budget)
        if self.holds is not False or not limit:
            return None
        found = self.ratio if "ratio" in self.budget else self.value
        by = found / float(limit[2].replace(",", "")) - 1
        return by if limit[1] == "<" else -by

    def as_json(self):
        def spread(values):
            return {"min": min(values), "median": statistics.median(values), "max": max(values), "runs": len(values)}

        found = {"name": self.name, "value": self.value, "unit": self.unit, "noise": spread(self.values)}
        if self.reference:
            found |= {"reference": {"name": self.reference_name, **spread(self.reference)}}
        for key in ("ratio", "budget", "holds", "short_by"):
            if getattr(self, key) not in (None, ""):
                found[key] = getattr(self, key)
        return found

    def as_line(self):
        verdict = {True: "holds", False: "FALLS SHORT", None: ""}[self.holds]
        if self.short_by is not None:
            verdict += f" by {self.short_by:.0%}"
        beside = f"{_short(statistics.median(self.reference))} {self.reference_name}" if self.reference else ""
        ratio = f"{self.ratio:.3g}" if self.ratio is not None else ""
        noise = f"{_short(min(self.values))}..{_short(max(self.values))}" if len(self.values) > 1 else ""
        return f"{self.name:34} {_short(self.value):>9} {self.unit:14} {noise:>17}  {ratio:>6}  {beside:34} {self.budget:30} {verdict}"


HEAD = f"{'what':34} {'median':>9} {'unit':14} {'min..max':>17}  {'ratio':>6}  {'beside':34} {'budget':30}"


def _short(value):
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def median(values):
    return statistics.median(values)


def median_ratio(ours, beside):
    """Of what was measured in turns: noise that lasts longer than one turn falls out."""
    return statistics.median(a / b for a, b in zip(ours, beside))


def options(question, **more):
    """The words that every benchmark takes; `more` are its own, as keywords of add_argument by name."""
    parser = argparse.ArgumentParser(description=question)
    parser.add_argument("--json", action="store_true", help="one JSON object per figure")
    parser.add_argument("--runs", type=int, default=5, help="repetitions (default 5)")
    for name, how in more.items():
        parser.add_argument("--" + name.replace("_", "-"), **how)
    return parser.parse_args()


def tell(chosen, figures):
    """Prints them; the exit code is 0 whether or not the budgets hold: a figure is no test."""
    if not chosen.json:
        print(HEAD)
    for figure in figures:
        print(json.dumps(figure.as_json()) if chosen.json else figure.as_line(), flush=True)
