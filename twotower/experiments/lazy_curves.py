"""Learning curves with the action tower updated at every fifth iteration, against every iteration."""

from dataclasses import replace

import numpy as np

from twotower.analysis.statistics import paired_t_test
from twotower.config import TrainConfig
from twotower.experiments.comparison import comparison_figure, ran_or_not
from twotower.experiments.plan import Choice, Planned, variants_planned
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import number, p_value, spread

SEEDS = 10
TASKS = ("swimmer", "hopper", "halfcheetah")
VARIANTS = {
    "": "regular",
    "lazy": "lazy",
    "kept": "regular, A* for an iteration",
    "kept lazy": "lazy, A* for an iteration",
}


def configuration(config: TrainConfig, variant: str) -> TrainConfig:
    """A task's configuration with lazy updates, or candidates kept for an iteration, or both."""
    if "lazy" in variant:
        config = replace(config, strategy=replace(config.strategy, lazy=5))
    if "kept" in variant:
        config = replace(config, candidates=replace(config.candidates, refresh="iteration"))
    return config


def plan(choice: Choice) -> list[Planned]:
    """Regular and lazy runs, with candidates redrawn at every step and kept for an iteration."""
    return variants_planned(choice, TASKS, VARIANTS, configuration, SEEDS)


def conclude(evidence: Evidence) -> Findings:
    """Final returns of each variant, and whether laziness changes them."""
    rows = []
    for task in evidence.tasks():
        for regular, lazy in (("", "lazy"), ("kept", "kept lazy")):
            cells = []
            for variant in (regular, lazy):
                runs = evidence.of(task, "itt", variant)
                cells.append(spread([float(run.returns[-1]) for run in runs]) if runs else "not run")
            rows.append((task, VARIANTS[regular], *cells, *_compared(evidence, task, regular, lazy)))
    headings = ("task", "candidates", "regular", "lazy", "p", "verdict", "ran")
    note = (
        "The paper prints no numbers, only that the lazy variant's return is comparable: *comparable* here means that "
        "a paired t-test of final returns does not tell them apart at 0.05. The paper's panels carry no names in the "
        "source we have; we chose the tasks. The rows with A* kept for an iteration are ours: only there can laziness "
        "reuse action latents."
    )
    figures = comparison_figure(evidence, "lazy-curves", VARIANTS)
    return Findings([Table("Final returns, regular and lazy", headings, rows, note)], figures)


def _compared(evidence: Evidence, task: str, regular: str, lazy: str) -> tuple[str, str, str]:
    first, second = evidence.of(task, "itt", regular), evidence.of(task, "itt", lazy)
    ran = ran_or_not(evidence, task, regular)
    seeds = {run.seed: run for run in second}
    pairs = [(run, seeds[run.seed]) for run in first if run.seed in seeds]
    if not pairs:
        return "-", "not run", ran
    scores = np.array([[run.returns[-1] for run in pair] for pair in pairs], dtype=np.float64)
    test = paired_t_test(scores[:, 0], scores[:, 1])
    p = float(test.p[0])
    if np.isnan(p):
        return "-", "equal in every pair" if not test.difference.any() else "one seed", ran
    verdict = "comparable" if p >= 0.05 else f"differs by {number(-float(test.difference[0]))}"
    return p_value(p), verdict + (" (cut)" if any(run.cut for pair in pairs for run in pair) else ""), ran


RESULT = Result("lazy-curves", "Learning curves with lazy updates", "Figure 5", plan, conclude)
