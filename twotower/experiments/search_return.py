"""Whether search buys reward: returns at equal wall-clock, with few candidates looked at and with many searched."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from twotower.api import merged
from twotower.config import TrainConfig
from twotower.experiments.fast import cell, limited, middle, smoothed, smoothed_curve
from twotower.experiments.panels import Panel, panels
from twotower.experiments.plan import Choice, Planned
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import not_run, number
from twotower.experiments.timing import seconds_per_step, timed
from twotower.recipes import task_config

TASKS = ("swimmer", "halfcheetah")
STEPS = 1_000_000
SEEDS = 3
KEPT: dict[str, Any] = {"count": 2**14, "refresh": "rollout"}
VARIANTS: dict[str, dict[str, Any]] = {
    "1,000 a step": {"policy": {"search": "brute_force"}},
    "1,000 kept": {"candidates": {"refresh": "rollout"}, "policy": {"search": "brute_force"}},
    "2^14 kept": {"candidates": KEPT, "policy": {"search": "brute_force"}},
    "2^14 searched": {"candidates": KEPT, "policy": {"search": "auto"}},
    "2^14 coreset": {"candidates": KEPT, "policy": {"search": "coreset"}},
}
FIRST = next(iter(VARIANTS))


def plan(choice: Choice) -> list[Planned]:
    """Every variant of the fast preset, trained, and for a few iterations timed."""
    runs = []
    for task in choice.tasks or TASKS:
        for variant in VARIANTS:
            for seed in range(choice.num_seeds(SEEDS)):
                runs.append(limited(choice, replace(_configuration(task, variant, seed), steps=STEPS), variant))
            config = _configuration(task, variant, 0)
            directions = config.strategy.num_directions
            runs.append(timed(choice, config, _timed(variant), iterations=6, directions=directions))
    return runs


def _configuration(task: str, variant: str, seed: int) -> TrainConfig:
    return merged(replace(task_config(task, "itt", "fast"), seed=seed), VARIANTS[variant])


def _timed(variant: str) -> str:
    return f"{variant}, timed"


def conclude(evidence: Evidence) -> Findings:
    """What each variant returns after as many steps, and in the time that the quickest takes for them."""
    rows, by_steps, by_time = [], [], []
    for task in evidence.tasks():
        found = {variant: cell(evidence, task, "itt", variant) for variant in VARIANTS}
        rates = {variant: _seconds_per_step(evidence, task, variant) for variant in VARIANTS}
        shared = min((rates[v] * _last(found[v]) for v in VARIANTS if found[v] and rates[v]), default=0.0)
        at = {v: [_return_at(run, shared / rates[v]) for run in found[v]] if rates[v] else [] for v in VARIANTS}
        rows += [_row(evidence, task, v, found[v], rates[v], at, shared) for v in VARIANTS]
        curves = {v: smoothed_curve(v, found[v]) for v in VARIANTS if found[v] and len(found[v][0].returns) > 9}
        by_steps.append(Panel(task, list(curves.values())))
        minutes = [c._replace(x=c.x * 1000 * rates[v] / 60) for v, c in curves.items() if rates[v]]
        by_time.append(Panel(task, minutes))
    headings = ("task", "candidates", "steps a second", "final evaluation", "minutes", "return at equal time",
                "verdict", "ran")  # fmt: skip
    note = (
        "Candidates redrawn at every step or kept for a rollout; all of them looked at, searched exactly, or by a "
        "coreset, approximately. The fast preset, median (10th to 90th percentile over seeds). Steps a second of runs "
        "that were timed alone, all cores at work; minutes are those of all steps at that speed. Equal time: what the "
        "quickest variant takes for all its steps; the return is that of θₖ, smoothed over five iterations. Verdict: "
        "*more* or *less* where all seeds are above or below all seeds of the first row, *no difference* otherwise."
    )
    label = "return of θₖ, smoothed"
    figures = {
        name: panels(drawn, x_label, label, columns=2)
        for name, drawn, x_label in (
            ("search-return-steps", by_steps, "environment steps, thousands"),
            ("search-return-time", by_time, "minutes on all cores"),
        )
        if any(panel.curves for panel in drawn)
    }
    return Findings([Table("Returns with and without search", headings, rows, note)], figures)


def _row(
    evidence: Evidence,
    task: str,
    variant: str,
    runs: Sequence[Finished],
    rate: float,
    at: dict[str, list[float]],
    shared: float,
) -> tuple[str, ...]:
    if not runs:
        return task, variant, *["-"] * 4, "not run", not_run(evidence.planned(task, "itt", variant))
    speed, minutes = (number(1 / rate), number(rate * _last(runs) / 60)) if rate else ("not run", "-")
    there = f"{middle(at[variant])} after {number(shared / 60)} minutes" if at[variant] else "-"
    ran = f"{len(runs)} seeds, {number(_last(runs))} steps"
    return (
        task,
        variant,
        speed,
        middle([run.evaluation for run in runs]),
        minutes,
        there,
        _verdict(variant, at, runs),
        ran,
    )


def _verdict(variant: str, at: dict[str, list[float]], runs: Sequence[Finished]) -> str:
    if variant == FIRST:
        return ""
    ours, first = at[variant], at[FIRST]
    if not ours or not first:
        return "not run"
    if any(run.planned.short for run in runs):
        return "cut"
    return "more" if min(ours) > max(first) else "less" if max(ours) < min(first) else "no difference"


def _seconds_per_step(evidence: Evidence, task: str, variant: str) -> float:
    """Measured, or 0 where nothing was."""
    runs = cell(evidence, task, "itt", _timed(variant))
    return float(np.mean([seconds_per_step(run) for run in runs])) if runs else 0.0


def _last(runs: Sequence[Finished]) -> float:
    return float(np.mean([run.policy.steps for run in runs]))


def _return_at(run: Finished, steps: float) -> float:
    """The return of θ_k after so many steps, smoothed where there are iterations enough."""
    values = np.where(np.isnan(smoothed(run)), run.returns, smoothed(run))
    return float(np.interp(steps, [row["steps"] for row in run.rows], values))


RESULT = Result("search-return", "Search and reward at equal time", "ours", plan, conclude)
