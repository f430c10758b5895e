"""Environment steps until a return is reached: ITT, its smaller networks, and its random feature tree."""

from collections.abc import Sequence

import numpy as np

from twotower.config import TrainConfig
from twotower.experiments.plan import Choice, Planned, base, planned, printed_row
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import not_run, number, what_ran
from twotower.recipes.published import table

PRINTED = table("timesteps_to_threshold_6_seeds")
SEEDS = 6
# Long enough for nearly all seeds to get there; those that do not are named in the table.
ITERATIONS = {"swimmer": 150, "hopper": 200, "walker2d": 200}
VARIANTS = {"itt": "ITT", "itt_1": "ITT-1", "itt_2": "ITT-2"}


def plan(choice: Choice) -> list[Planned]:
    """Every task with every network."""
    return [
        planned(choice, _config(task, variant, seed), variant)
        for task in choice.tasks or tuple(ITERATIONS)
        for variant in VARIANTS
        if variant == "itt" or task in ITERATIONS
        for seed in range(choice.num_seeds(SEEDS))
    ]


def _config(task: str, variant: str, seed: int) -> TrainConfig:
    name = task if variant == "itt" else f"{task}-{variant.replace('_', '-')}"
    found = base(name, seed=seed)
    return base(name, seed=seed, iterations=ITERATIONS.get(task, found.iterations))


def conclude(evidence: Evidence) -> Findings:
    """Steps to the threshold, variant by variant."""
    rows = []
    for task in evidence.tasks():
        printed = printed_row(PRINTED, task)
        variant = next(run.variant for run in evidence.plan if run.config.task == task)
        runs = evidence.of(task, "itt", variant)
        name = task.split("-itt-")[0]
        theirs = number(printed[variant]) if printed else "not printed"
        rivals = f"{number(printed['es'])} / {number(printed['trpo'])}" if printed else "-"
        threshold = number(printed["threshold"]) if printed else "-"
        if not runs or not printed:
            why = not_run(evidence.planned(task, "itt", variant)) if not runs else "no threshold printed"
            judged = "nothing printed" if runs else "not run"
            rows.append((name, VARIANTS[variant], threshold, theirs, why, "-", rivals, judged, what_ran(runs) or "-"))
            continue
        steps = [steps_to(run.rows, printed["threshold"]) for run in runs]
        reached = [count for count in steps if count is not None]
        ours = number(float(np.mean(reached))) if reached else "never reached"
        span = f"{number(min(reached))} to {number(max(reached))}" if reached else "-"
        judged = verdict(reached, runs, printed[variant])
        if len(reached) == len(runs):
            judged += "; fewer than ES" if np.mean(reached) < printed["es"] else "; more than ES"
        ran = f"{what_ran(runs)}; {len(reached)} of {len(runs)} reached it"
        rows.append((name, VARIANTS[variant], threshold, theirs, ours, span, rivals, judged, ran))
    headings = ("task", "network", "return", "steps, published", "ours, mean", "ours, range", "ES / TRPO, published",
                "verdict", "ran")  # fmt: skip
    note = (
        "All environment steps count, those of every perturbed policy, until the evaluation episode of an iteration "
        "reaches the return; means are over the seeds that reach it. Verdict: *fewer* or *more* where the published "
        "mean lies outside the range of our seeds, *within* otherwise; and whether ES is beaten. Our widths of ITT-1 "
        "and ITT-2 are inferred from their printed numbers of parameters. The random feature tree has its own table: "
        "twotower reproduce rft."
    )
    return Findings([Table("Steps to the threshold", headings, rows, note)])


def steps_to(rows: list[dict[str, float]], threshold: float) -> int | None:
    """The environment steps of all iterations up to the first whose evaluation reaches a return."""
    return next((int(row["steps"]) for row in rows if row["return"] >= threshold), None)


def verdict(reached: Sequence[int], runs: Sequence[Finished], mean: float) -> str:
    """Whether all runs reached it, and the published mean's place among their steps."""
    if len(reached) < len(runs):
        return f"{len(runs) - len(reached)} never reached it" + (" (cut)" if any(run.cut for run in runs) else "")
    return "fewer" if max(reached) < mean else "more" if min(reached) > mean else "within"


RESULT = Result("thresholds", "Steps to a threshold", "Tables 7, 10 and 11", plan, conclude)
