"""Hours of training for the three policies, extrapolated from measured iterations."""

import numpy as np

from twotower.experiments.costs import episode_length
from twotower.experiments.plan import Choice, Planned, base, printed_row
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import KIND_NAMES, not_run, number
from twotower.experiments.timing import NOTE, measured, seconds_per_step, timed
from twotower.recipes import find
from twotower.recipes.published import table

PRINTED = table("wall_clock_hours_24_cores")
CORES = 24
SAME = 0.05  # times closer than this count as equal: one measurement a cell tells no finer
TASKS = ("swimmer", "lunarlander", "hopper", "halfcheetah", "walker2d")


def plan(choice: Choice) -> list[Planned]:
    """A short run of every task and policy, with 31 directions so that 63 of the 64 slots are at work."""
    seeds = range(choice.seeds or 1)
    return [
        timed(choice, base(task, kind, seed), iterations=20 if task == "lunarlander" else 7, directions=31)
        for task in choice.tasks or TASKS
        for kind in choice.kinds()
        for seed in seeds
    ]


def conclude(evidence: Evidence) -> Findings:
    """Core-hours of the paper's iterations, and their ratios to the explicit policy's."""
    rows = []
    for task in evidence.tasks():
        printed = printed_row(PRINTED, task)
        hours = {kind: _core_hours(evidence, task, kind) for kind in evidence.choice.kinds()}
        for kind in evidence.choice.kinds():
            runs, theirs = evidence.of(task, kind), printed.get(kind)
            published = "not printed" if theirs is None else f"{number(CORES * theirs)}"
            if not runs:
                rows.append((task, KIND_NAMES[kind], published, not_run(evidence.planned(task, kind)), *["-"] * 4))
                continue
            rows.append(
                (
                    task,
                    KIND_NAMES[kind],
                    published,
                    number(hours[kind]),
                    _ratio(theirs, printed.get("explicit")),
                    _ratio(hours[kind], hours.get("explicit")),
                    _verdict(printed, hours, kind),
                    measured(runs),
                )
            )
    headings = ("task", "policy", "core-hours, published", "ours, extrapolated", "ratio to explicit, published", "ours",
                "verdict", "measured")  # fmt: skip
    note = (
        "Extrapolated to the paper's iterations of 2D + 1 episodes, each as long as a trained policy's (hopper and "
        "walker2d 500 steps, lunarlander 300, the others 1,000): seconds a step × steps × workers. The paper's hours "
        f"are on {CORES} cores. {NOTE} Verdict: whether ITT is faster than the policy of the row, slower, or as fast "
        "within 5 %."
    )
    return Findings([Table("Hours of training", headings, rows, note)], data={"note": NOTE})


def _core_hours(evidence: Evidence, task: str, kind: str) -> float:
    runs = evidence.of(task, kind)  # pyright: ignore[reportArgumentType]
    recipe = find(task)
    if not runs or recipe is None:
        return float("nan")
    episodes = recipe.iterations * (2 * len(runs[0].policy.theta) + 1)
    rate = float(np.mean([seconds_per_step(run) for run in runs]))
    return rate * evidence.choice.workers * episodes * episode_length(task) / 3600


def _ratio(hours: float | None, explicit: float | None) -> str:
    return "-" if hours is None or explicit is None else number(hours / explicit)


def _verdict(printed: dict[str, float], hours: dict[str, float], kind: str) -> str:
    if kind == "itt":
        return ""
    if kind not in printed or not np.isfinite([hours.get("itt", np.nan), hours[kind]]).all():
        return "nothing to compare"
    theirs, ours = _order(printed["itt"] / printed[kind]), _order(hours["itt"] / hours[kind])
    return f"ITT {ours} in both" if theirs == ours else f"ITT {theirs} in the paper, {ours} here"


def _order(ratio: float) -> str:
    if abs(ratio - 1) <= SAME:
        return "as fast"
    return "faster" if ratio < 1 else "slower"


RESULT = Result("wall-clock", "Hours of training", "Table 2", plan, conclude, compares_policies=True)
