"""Runs that differ in nothing but their seed form a group; groups get short names and a table of their differences."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from twotower.analysis.report.gather import RunRecord
from twotower.config import to_dict

# What changes no bit of the result, or only when training stops being watched.
MACHINE = (
    "run_dir", "workers", "executor", "worker_timeout", "plain", "checkpoint_seconds", "evaluation_episodes", "log",
)  # fmt: skip
NAMED_FIRST = ("policy.kind", "preset", "policy.search", "strategy.sigma", "candidates.count")
KINDS = {"itt": "ITT", "iot": "IOT", "explicit": "explicit"}
POINTS = 200


@dataclass(frozen=True)
class Group:
    """Runs of one task that share a configuration."""

    name: str
    runs: tuple[RunRecord, ...]

    def scores(self) -> dict[int, float]:
        """The evaluation of every seed that has one; of two runs of a seed the later folder's."""
        return {run.config.seed: run.score for run in self.runs if run.score is not None}


@dataclass(frozen=True)
class Curve:
    """A group's learning curve over environment steps."""

    steps: np.ndarray  # (points,)
    mean: np.ndarray
    low: np.ndarray
    high: np.ndarray


def flat(data: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested choices as {"policy.kind": …}."""
    out: dict[str, Any] = {}
    for name, value in data.items():
        out |= flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return out


def choices(run: RunRecord) -> dict[str, Any]:
    """What a run was asked, but for its task, its seed and where it ran."""
    return {name: v for name, v in flat(to_dict(run.config)).items() if name not in (*MACHINE, "seed", "task")}


def by_task(runs: Sequence[RunRecord]) -> dict[str, list[Group]]:
    """Each task's groups, in the order the runs were found."""
    tasks: dict[str, dict[str, list[RunRecord]]] = {}
    for run in runs:
        tasks.setdefault(run.config.task, {}).setdefault(repr(choices(run)), []).append(run)
    return {task: _named(list(groups.values())) for task, groups in tasks.items()}


def _named(groups: list[list[RunRecord]]) -> list[Group]:
    """Names from as few of the differing choices as tell the groups apart."""
    asked = [choices(runs[0]) for runs in groups]
    used: list[str] = ["policy.kind"]

    def names() -> list[str]:
        return [" · ".join(_said(name, chosen[name]) for name in used) for chosen in asked]

    differing = [name for name in asked[0] if any(chosen[name] != asked[0][name] for chosen in asked)]
    for name in sorted(differing, key=lambda name: name not in NAMED_FIRST):
        before = len(set(names()))
        if before == len(groups):
            break
        used.append(name)
        if len(set(names())) == before:
            used.remove(name)
    return [Group(name, tuple(runs)) for name, runs in zip(names(), groups, strict=True)]


def _said(name: str, value: Any) -> str:
    if name == "policy.kind":
        return KINDS.get(value, str(value))
    if name in ("preset", "policy.search"):
        return f"{value}"
    return f"{name.rpartition('.')[2].replace('_', ' ')} {shown(value)}"


def shown(value: Any) -> str:
    """A choice's value in words."""
    if isinstance(value, list | tuple):
        return "×".join(map(str, value)) or "none"
    if value is None or isinstance(value, bool):
        return {None: "default", True: "yes", False: "no"}[value]
    return f"{value:g}" if isinstance(value, float) else str(value)


def differences(groups: Sequence[Group]) -> list[tuple[str, list[str]]]:
    """The choices in which runs differ: name, and each group's value (several where its own runs differ)."""
    table: list[tuple[str, list[str]]] = []
    asked = [[flat(to_dict(run.config)) for run in group.runs] for group in groups]
    for name in asked[0][0]:
        if name in ("seed", "run_dir", "task"):
            continue
        cells = [", ".join(dict.fromkeys(shown(one[name]) for one in runs)) for runs in asked]
        if len(set(cells)) > 1 or any(", " in cell for cell in cells):
            table.append((name, cells))
    return table


def curve(group: Group, name: str = "return") -> Curve | None:
    """The group's mean over its runs with the 10th to 90th percentile; of one run, its population's."""
    series = [(run.column("steps"), smooth(run.column(name)), run) for run in group.runs]
    series = [(x, y, run) for x, y, run in series if np.isfinite(x).any() and np.isfinite(y).any()]
    if not series:
        return None
    # A run that has ended counts with its last return; leaving it out would let failures vanish from the mean.
    first, last = (np.median([pick(x[np.isfinite(x)]) for x, _, _ in series]) for pick in (np.min, np.max))
    grid = np.linspace(first, last, POINTS)
    table = np.array([_on(grid, x, y) for x, y, _ in series])
    if len(series) == 1:
        x, _, run = series[0]
        low, high = (_on(grid, x, smooth(run.column(f"population_{end}"))) for end in ("p10", "p90"))
        if name != "return":
            low = high = table[0]
        return Curve(grid, table[0], low, high)
    low, high = np.nanpercentile(table, [10, 90], axis=0)
    return Curve(grid, np.nanmean(table, axis=0), low, high)


def smooth(values: np.ndarray) -> np.ndarray:
    """The running mean over a fiftieth of a curve; what is not a number counts for nothing."""
    half = len(values) // 100
    if not half:
        return values
    known = np.isfinite(values)
    window = np.ones(2 * half + 1)
    counts = np.convolve(known, window, mode="same")
    sums = np.convolve(np.where(known, values, 0.0), window, mode="same")
    return np.divide(sums, counts, out=np.full(len(values), np.nan), where=counts > 0)


def _on(grid: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return np.full(len(grid), np.nan)
    return np.interp(grid, x[known], y[known])
