"""Numbers as the tables print them, and the rules by which a cell gets its verdict."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from twotower.analysis.statistics import mean_band, mean_std
from twotower.experiments.costs import total
from twotower.experiments.plan import Planned
from twotower.experiments.records import Finished

KIND_NAMES = {"itt": "ITT", "iot": "IOT", "explicit": "explicit"}
VERDICT_RULE = (
    "Verdict: *agrees* where the two 95 % intervals of the mean (Student's t, from the printed mean, deviation and "
    "number of seeds) overlap, *above* or *below* where they do not; *cut* where our runs are shorter than the paper's "
    "and not above already."
)


class Published(NamedTuple):
    """A printed mean ± standard deviation."""

    mean: float
    std: float
    seeds: int

    def band(self) -> tuple[float, float]:
        """The 95 % interval of the mean that they stand for."""
        reach = float(special.stdtrit(self.seeds - 1, 0.975)) * self.std / math.sqrt(self.seeds)
        return self.mean - reach, self.mean + reach

    def __str__(self) -> str:
        return f"{number(self.mean)} ± {number(self.std)}"


def verdict(published: Published | None, ours: Sequence[float], cut: bool) -> str:
    """How our runs compare with a printed mean."""
    if published is None:
        return "nothing printed"
    if len(ours) == 0:
        return "not run"
    if len(ours) < 2:
        return "one seed"
    low, high = (float(limit[0]) for limit in mean_band(list(ours)))
    printed_low, printed_high = published.band()
    if low > printed_high:
        return "above" + (" although cut" if cut else "")
    if cut:
        return "cut"
    return "below" if high < printed_low else "agrees"


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation."""
    found = mean_std(list(values))
    mean, std = float(found.mean[0]), float(found.std[0])
    return number(mean) if math.isnan(std) else f"{number(mean)} ± {number(std)}"


def number(value: float) -> str:
    """A number with as many digits as it deserves."""
    if not math.isfinite(value):
        return "-"
    if value == 0 or abs(value) >= 1e7:
        return f"{value:.3g}"
    digits = max(0, min(2, 3 - int(math.floor(math.log10(abs(value))))))
    text = f"{value:,.{digits}f}" if abs(value) >= 0.01 else f"{value:.2g}"
    return text.replace("-", "−")


def p_value(p: float) -> str:
    """A p-value with three significant figures."""
    return "-" if math.isnan(p) else f"{p:.3g}"


def what_ran(runs: Sequence[Finished]) -> str:
    """Seeds, iterations and every way in which a cell's runs are less than the paper's."""
    if not runs:
        return ""
    wanted = runs[0].planned.config
    count = len(runs)
    words = [f"{count} seed" + ("s" if count > 1 else "")]
    paper = full_iterations(runs[0].planned)
    trained = runs[0].iterations
    words.append(f"{trained:,} of {paper:,} iterations" if paper and trained < paper else f"{trained:,} iterations")
    if wanted.strategy.num_directions and runs[0].planned.short:
        words.append(f"{wanted.strategy.num_directions} directions")
    if wanted.env.max_episode_steps:
        words.append(f"episodes cut at {wanted.env.max_episode_steps} steps")
    return ", ".join(words)


def full_iterations(planned: Planned) -> int | None:
    """The iterations of the recipe."""
    from twotower.recipes import find

    recipe = find(planned.config.task)
    return recipe.iterations if recipe else None


def not_run(planned: Sequence[Planned]) -> str:
    """Why a cell is empty: what it would cost."""
    if not planned:
        return "not run: left out by --tasks or --policies"
    return f"not run: needs about {cost(total(planned))}"


def cost(core_seconds: float) -> str:
    """Core-seconds for people."""
    minutes = core_seconds / 60
    amount, unit = (minutes, "core-minutes") if minutes < 100 else (minutes / 60, "core-hours")
    return f"{max(amount, 0.1):.1f} {unit}" if amount < 10 else f"{amount:,.0f} {unit}"


def emphasised(cells: Sequence[str], values: Sequence[float]) -> list[str]:
    """The best cell bold and the second underlined, as the paper marks them; equals share a mark."""
    ranked = sorted({value for value in values if not np.isnan(value)}, reverse=True)
    marks = {ranked[0]: "**{}**"} if len(ranked) > 1 else {}
    if len(ranked) > 2 or (len(ranked) == 2 and len(values) > 2):
        marks[ranked[1]] = "<u>{}</u>"
    return [marks.get(value, "{}").format(cell) for cell, value in zip(cells, values, strict=True)]
