"""Time of training with the action tower updated at every fifth iteration, against every iteration."""

import numpy as np

from twotower.analysis.statistics import paired_t_test
from twotower.experiments.lazy_curves import VARIANTS, configuration
from twotower.experiments.plan import Choice, Planned, base, printed_row
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import not_run, number, p_value
from twotower.experiments.timing import NOTE, measured, seconds_per_iteration, timed
from twotower.recipes.published import table

PRINTED = table("lazy_wall_clock_minutes_30_cores")
TASKS = ("halfcheetah", "walker2d", "hopper")
SEEDS = 3
STEPS_PER_EPISODE = 60


def plan(choice: Choice) -> list[Planned]:
    """A whole cycle of five iterations after the first; episodes are cut, directions are not."""
    seeds = choice.seeds or (2 if choice.size == "quick" else SEEDS)
    return [
        timed(
            choice,
            configuration(base(task, seed=seed), variant),
            variant,
            iterations=6 if choice.size == "paper" else 12,  # of which a quick run takes half
            directions=None,
            steps_per_episode=STEPS_PER_EPISODE if choice.size == "paper" else STEPS_PER_EPISODE // 3,
        )
        for task in choice.tasks or TASKS
        for variant in VARIANTS
        for seed in range(seeds)
    ]


def conclude(evidence: Evidence) -> Findings:
    """The share of time that laziness saves, with candidates redrawn at every step and kept for an iteration."""
    rows = []
    for task in evidence.tasks():
        printed = printed_row(PRINTED, task)
        for regular, lazy, label in (("", "lazy", "step"), ("kept", "kept lazy", "iteration")):
            first, second = evidence.of(task, "itt", regular), evidence.of(task, "itt", lazy)
            theirs = printed if label == "step" else None
            said = f"{1 - theirs['lazy'] / theirs['itt']:.0%}, p = {p_value(theirs['p'])}" if theirs else "not measured"
            if not first or len(first) != len(second):
                why = not_run([*evidence.planned(task, "itt", regular), *evidence.planned(task, "itt", lazy)])
                rows.append((task, label, said, why, "-", "-", "not run", "-"))
                continue
            times = [np.array([seconds_per_iteration(run) for run in runs]) for runs in (first, second)]
            saved, p = 1 - times[1].mean() / times[0].mean(), float(paired_t_test(*times).p[0])
            cells = (f"{saved:.0%}, p = {p_value(p)}", number(times[0].mean()), number(times[1].mean()))
            verdict = "measured by us only" if theirs is None else _verdict(saved, p)
            rows.append((task, label, said, *cells, verdict, measured(first)))
    headings = ("task", "candidates redrawn every", "time saved, published", "ours", "seconds an iteration, regular",
                "lazy", "verdict", "measured")  # fmt: skip
    note = (
        f"Episodes are cut at {STEPS_PER_EPISODE} steps ({STEPS_PER_EPISODE // 3} in a quick run); all directions are "
        "used. A lazy iteration draws its directions in the state tower's space alone, so it runs fewer episodes: that "
        f"is where the time goes. {NOTE} Verdict: whether laziness saves time with p < 0.05 in both."
    )
    return Findings([Table("Time that lazy updates save", headings, rows, note)])


def _verdict(saved: float, p: float) -> str:
    if np.isnan(p):
        return "no test"
    return "saves time in both" if saved > 0 and p < 0.05 else "not shown"


RESULT = Result("lazy-wall-clock", "Time of training with lazy updates", "Table 9", plan, conclude)
