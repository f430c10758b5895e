"""Fewer steps: how soon the fast preset reaches the paper's final scores, against ARS, other policies and itself."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from twotower.api import merged
from twotower.config import PolicyKind, PresetName, TrainConfig
from twotower.experiments.curves import thinned
from twotower.experiments.panels import Curve, Panel, panels
from twotower.experiments.plan import Choice, Planned, printed_row
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.scores import printed
from twotower.experiments.text import KIND_NAMES, not_run, number
from twotower.recipes import budgeted, find, task_config
from twotower.recipes.published import table

SEEDS = 5
QUICK_ITERATIONS = 3
WINDOW = 5
"""Iterations whose episodes of θ_k are averaged before a score counts as reached."""


@dataclass(frozen=True)
class Bar:
    """Within how many steps the paper's score should be reached, and the score of published ARS at its steps."""

    steps: int
    ars: tuple[float, int] | None = None


# ARS: RL Baselines3 Zoo's tuned linear policies, with their training steps.
BARS = {
    "mountaincarcontinuous": Bar(500_000, (96.7, 500_000)),
    "acrobot": Bar(500_000),
    "lunarlander": Bar(1_000_000, (168, 2_000_000)),
    "swimmer": Bar(3_000_000, (355, 2_000_000)),
    "hopper": Bar(5_000_000, (3344, 7_000_000)),
    "walker2d": Bar(5_000_000, (2994, 75_000_000)),
    "halfcheetah": Bar(10_000_000, (4815, 12_000_000)),
    "fish-swim": Bar(1_000_000),
    "hopper-stand": Bar(1_000_000),
    "walker-walk": Bar(1_000_000),
}
# They take the default; of Ant the preset knows the survival bonus and that it has many parameters.
UNTUNED = ("Pendulum-v1", "BipedalWalker-v3", "dmc:cartpole-swingup", "Ant-v5")
QUICK_TASKS = ("mountaincarcontinuous", "acrobot", "lunarlander")
# Each leaves one ingredient out, or puts another in its place.
ABLATION: dict[str, dict[str, Any]] = {
    "no normaliser": {"policy": {"normalise_observations": False}},
    "no scaling": {"strategy": {"scale_returns": False}},
    "ranks": {"strategy": {"scale_returns": False, "shaping": "ranks"}},
    "no selection": {"strategy": {"top_directions": None}},
    "independent directions": {"strategy": {"directions": "independent"}},
    "candidates per rollout": {"candidates": {"refresh": "rollout"}},
    "100 candidates": {"candidates": {"count": 100}},
    "linear action tower": {"policy": {"action_hidden": ()}},
}
ABLATION_TASKS = ("lunarlander",)
SHAPED_BY_SCALE = ("no scaling", "ranks")


def plan(choice: Choice) -> list[Planned]:
    """Fast and ARS on every task, the other policies under the fast trainer, and the ablation."""
    tasks = choice.tasks or (QUICK_TASKS if choice.size == "quick" else (*BARS, *UNTUNED))
    runs = []
    for task in tasks:
        kinds = ("itt",) if task in UNTUNED else choice.kinds()
        for seed in range(choice.num_seeds(SEEDS)):
            runs += [_planned(choice, task, kind, "fast", "fast", seed) for kind in kinds]
            runs.append(_planned(choice, task, "explicit", "ars", "ars", seed))
            if task in ABLATION_TASKS:
                runs += [_planned(choice, task, "itt", "fast", name, seed, ABLATION[name]) for name in ABLATION]
    return runs


def _planned(
    choice: Choice, task: str, kind: PolicyKind, preset: PresetName, variant: str, seed: int, changes: Any = None
) -> Planned:
    config = replace(task_config(task, kind, preset), seed=seed)
    config = merged(config, changes or {})
    if variant in SHAPED_BY_SCALE:
        config = _without_scale(config, variant)
    return limited(choice, replace(config, steps=BARS[task].steps) if task in BARS else budgeted(config), variant)


def limited(choice: Choice, config: TrainConfig, variant: str) -> Planned:
    """A run to a budget in steps, cut after a few iterations where the user asked for less."""
    limits = (QUICK_ITERATIONS if choice.size == "quick" else None, choice.iterations)
    limit = min((limit for limit in limits if limit is not None), default=None)
    episodes = 5 if choice.size == "quick" else config.evaluation_episodes
    return Planned(replace(config, iterations=limit, evaluation_episodes=episodes), variant, short=limit is not None)


def _without_scale(config: TrainConfig, variant: str) -> TrainConfig:
    """With η divided by what the deviation of the returns would be: 0.29 for ranks, some 100 for raw ones."""
    deviation = {"ranks": 0.29, "no scaling": 100.0}[variant]
    return merged(config, {"strategy": {"step_size": config.strategy.step_size / deviation}})


def cell(evidence: Evidence, task: str, kind: str, variant: str) -> list[Finished]:
    """A cell's finished runs; runs of one budget in steps differ in iterations."""
    return sorted((run for run in evidence.runs if run.planned.cell == (task, kind, variant)), key=lambda run: run.seed)


def smoothed(run: Finished) -> np.ndarray:  # (iterations,)
    """The return of θ_k, each the mean of the last WINDOW iterations; NaN before there are as many."""
    means = np.convolve(run.returns, np.ones(WINDOW) / WINDOW, "valid")
    return np.concatenate([np.full(min(WINDOW - 1, len(run.returns)), np.nan), means])[: len(run.returns)]


def steps_to(run: Finished, score: float) -> float:
    """Environment steps until the smoothed return reaches a score; infinity if it never does."""
    reached = np.flatnonzero(smoothed(run) >= score)
    return float(run.rows[reached[0]]["steps"]) if reached.size else np.inf


def middle(values: Sequence[float]) -> str:
    """Median and the 10th to 90th percentile; more than half that never reach it have no median."""
    low, median, high = np.percentile(np.asarray(values), [10, 50, 90], method="nearest")
    if np.isinf(median):
        return "not reached"
    if len(values) == 1:
        return number(float(median))
    highest = number(float(high)) if high < np.inf else "never"
    return f"{number(float(median))} ({number(float(low))} to {highest})"


def conclude(evidence: Evidence) -> Findings:
    """Five tables, and the curves over environment steps."""
    tables = [
        _steps(evidence), _against_ars(evidence), _policies(evidence), _untuned(evidence), _ablation(evidence),
    ]  # fmt: skip
    drawn = [found for task in evidence.tasks() if (found := _panel(evidence, task)).curves]
    figures = {}
    if drawn:
        y_label = "return of θₖ, smoothed"
        figures["fast-curves"] = panels(drawn, "environment steps, thousands", y_label)
    return Findings([table for table in tables if table.rows], figures)


def _steps(evidence: Evidence) -> Table:
    rows = [_steps_row(evidence, task, BARS[task]) for task in evidence.tasks() if task in BARS]
    headings = ("task", "the paper's ITT score, our bar", "seeds that reach it", "steps to it", "final evaluation",
                "our core-hours", "the paper's core-hours", "verdict")  # fmt: skip
    note = (
        "Median (10th to 90th percentile over seeds), in the figure, too. "
        f"Reached: the mean of θ_k's episodes over {WINDOW} iterations "
        "is at the score; final evaluation: 20 fresh episodes at the end of the budget. Our core-hours are those of "
        "the runs as they were made, other work on the machine included. Verdict: *within the bar* where the median of "
        "the steps is, and that of the final evaluations is at the score; *reached, not kept* where only the first."
    )
    return Table("Steps to the paper's final score", headings, rows, note)


def _steps_row(evidence: Evidence, task: str, bar: Bar) -> tuple[str, ...]:
    score, runs = printed(task, "itt"), cell(evidence, task, "itt", "fast")
    theirs = printed_row(table("wall_clock_hours_24_cores"), task).get("itt")
    cores = f"{24 * theirs:,.0f}" if theirs else "not printed"
    goal = f"{number(score.mean) if score else 'not printed'} within {_millions(bar.steps)}"
    if not runs:
        return task, goal, not_run(evidence.planned(task, "itt", "fast")), "-", "-", "-", cores, "not run"
    evaluation = middle([run.evaluation for run in runs])
    if score is None:
        return task, goal, f"{len(runs)} ran", "-", evaluation, "-", cores, "nothing printed"
    steps = [steps_to(run, score.mean) for run in runs]
    core_hours = [_core_hours(run, taken) for run, taken in zip(runs, steps, strict=True)]
    count = f"{sum(np.isfinite(steps))} of {len(runs)}"
    verdict = _verdict(steps, bar, score.mean, runs)
    return task, goal, count, middle(steps), evaluation, middle(core_hours), cores, verdict


def _core_hours(run: Finished, steps: float) -> float:
    rows = [row for row in run.rows if row["steps"] <= steps]
    return rows[-1]["seconds"] * (run.policy.config.workers or 1) / 3600 if np.isfinite(steps) else np.inf


def _verdict(steps: Sequence[float], bar: Bar, score: float, runs: Sequence[Finished]) -> str:
    if any(run.planned.short for run in runs):
        return "cut"
    if np.median(steps) > bar.steps:
        return "missed"
    kept = np.median([run.evaluation for run in runs]) >= score
    return "within the bar" if kept else "reached, not kept"


def _against_ars(evidence: Evidence) -> Table:
    rows = []
    for task in evidence.tasks():
        ours, ars = (cell(evidence, task, *which) for which in (("itt", "fast"), ("explicit", "ars")))
        bar = BARS.get(task)
        theirs = f"{number(bar.ars[0])} at {_millions(bar.ars[1])}" if bar and bar.ars else "not published"
        found = _evaluations(evidence, task, "explicit", "ars"), _evaluations(evidence, task, "itt", "fast")
        rows.append((task, theirs, *found, _at(evidence, task), _compared(ours, ars)))
    headings = ("task", "published ARS", "our ARS preset", "ITT, fast preset", "both at", "ITT's median")
    note = "Final evaluations, median (10th to 90th percentile over seeds); published: RL Baselines3 Zoo."
    return Table("Against ARS at equal steps", headings, rows, note)


def _at(evidence: Evidence, task: str) -> str:
    steps = evidence.planned(task, "itt", "fast")[0].config.steps if evidence.planned(task, "itt", "fast") else None
    return _millions(steps) if steps else "-"


def _compared(ours: Sequence[Finished], ars: Sequence[Finished]) -> str:
    if not ours or not ars:
        return "not run"
    if any(run.planned.short for run in (*ours, *ars)):
        return "cut"
    above = np.median([run.evaluation for run in ours]) >= np.median([run.evaluation for run in ars])
    return "at or above" if above else "below"


def _evaluations(evidence: Evidence, task: str, kind: PolicyKind, variant: str) -> str:
    runs = cell(evidence, task, kind, variant)
    planned = evidence.planned(task, kind, variant)
    if not runs:
        return not_run(planned)
    lacking = f", {len(runs)} of {len(planned)} seeds" if len(runs) < len(planned) else ""
    return middle([run.evaluation for run in runs]) + lacking


def _policies(evidence: Evidence) -> Table:
    kinds = evidence.choice.kinds()
    rows = [
        (task, *(_evaluations(evidence, task, kind, "fast") for kind in kinds), _at(evidence, task))
        for task in evidence.tasks()
        if task not in UNTUNED
    ]
    headings = ("task", *(KIND_NAMES[kind] for kind in kinds), "at")
    note = "The fast preset's trainer with each policy, all with the options found for ITT; final evaluations as above."
    return Table("Policies under one trainer", headings, rows, note)


def _untuned(evidence: Evidence) -> Table:
    rows = [
        (task, _beginning(cell(evidence, task, "itt", "fast")), _evaluations(evidence, task, "itt", "fast"),
         _evaluations(evidence, task, "explicit", "ars"), _at(evidence, task))
        for task in evidence.tasks()
        if task in UNTUNED
    ]  # fmt: skip
    headings = ("task", "θ₀", "ITT, fast preset", "our ARS preset", "at")
    note = (
        "Tasks that nobody tuned. θ₀: the return of the policy that training begins with; "
        "the others are final evaluations, median (10th to 90th percentile over seeds)."
    )
    return Table("Untuned", headings, rows, note)


def _beginning(runs: Sequence[Finished]) -> str:
    return middle([run.columns["return"][0] or 0.0 for run in runs]) if runs else "-"


def _ablation(evidence: Evidence) -> Table:
    tasks = [task for task in ABLATION_TASKS if evidence.planned(task, "itt", "ranks")]
    rows = [(name, *(_ablated(evidence, task, name) for task in tasks)) for name in ("fast", *ABLATION) if tasks]
    note = (
        "Final evaluation; steps to the paper's ITT score in brackets. Each row changes one ingredient of the fast "
        "preset. Without scaling, η is divided by a typical deviation of the returns (100; 0.29 for ranks)."
    )
    return Table("What each ingredient buys", ("preset", *tasks), rows, note)


def _ablated(evidence: Evidence, task: str, variant: str) -> str:
    runs, score = cell(evidence, task, "itt", variant), printed(task, "itt")
    said = _evaluations(evidence, task, "itt", variant)
    return f"{said} [{middle([steps_to(run, score.mean) for run in runs])}]" if runs and score else said


def _panel(evidence: Evidence, task: str) -> Panel:
    score = printed(task, "itt")
    curves = []
    for kind, variant in (*((kind, "fast") for kind in evidence.choice.kinds()), ("explicit", "ars")):
        runs = [run for run in cell(evidence, task, kind, variant) if len(run.returns) >= WINDOW]
        if runs:
            curves.append(smoothed_curve("ARS preset" if variant == "ars" else f"{KIND_NAMES[kind]}, fast", runs))
    recipe = find(task)
    return Panel(recipe.name if recipe else task, curves, {"ITT": score.mean} if score and curves else {})


def smoothed_curve(label: str, runs: Sequence[Finished]) -> Curve:
    """Smoothed returns over the steps that all of a cell's runs made."""
    steps = [np.array([row["steps"] for row in run.rows], dtype=np.float64)[WINDOW - 1 :] for run in runs]
    ends = max(taken[0] for taken in steps), min(taken[-1] for taken in steps)
    grid = np.linspace(*ends, len(thinned(200)))
    values = np.stack(
        [np.interp(grid, taken, smoothed(run)[WINDOW - 1 :]) for taken, run in zip(steps, runs, strict=True)]
    )
    low, median, high = np.percentile(values, [10, 50, 90], axis=0)
    return Curve(label, grid / 1000, median, *((low, high) if len(runs) > 1 else ()))


def _millions(steps: int) -> str:
    return f"{steps / 1e6:g} M"


RESULT = Result("fast", "Published scores in fewer steps", "Table 1, in fewer steps", plan, conclude, True)
