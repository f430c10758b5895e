"""Learning curves of ITT with signed random projections, against exact search over the same candidates."""

from dataclasses import replace

import numpy as np

from twotower.analysis.statistics import paired_t_test
from twotower.config import SearchConfig, TrainConfig
from twotower.experiments.comparison import comparison_figure, ran_or_not
from twotower.experiments.plan import Choice, Planned, variants_planned
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import p_value, spread

SEEDS = 10
TASKS = ("swimmer", "halfcheetah", "lunarlander", "hopper")
VARIANTS = {"exact": "exact", "srp": "SRP, the paper's", "coreset": "directional coreset"}
METHODS = {"exact": "auto", "srp": "srp_paper", "coreset": "coreset"}


def configuration(config: TrainConfig, variant: str) -> TrainConfig:
    """The paper's N and projections; candidates are kept for a rollout, so that an index can serve."""
    large = config.task == "halfcheetah"
    count, bits = (2**14, 6) if large else (2**10, 3)
    return replace(
        config,
        candidates=replace(config.candidates, count=count, refresh="rollout"),
        policy=replace(config.policy, search=METHODS[variant]),
        search=SearchConfig(bits=bits) if variant == "srp" else SearchConfig(),
    )


def plan(choice: Choice) -> list[Planned]:
    """Exact, hashed and coreset runs."""
    return variants_planned(choice, TASKS, VARIANTS, configuration, SEEDS)


def conclude(evidence: Evidence) -> Findings:
    """Final returns of each search, and whether hashing changes them."""
    rows = []
    for task in evidence.tasks():
        exact = {run.seed: float(run.returns[-1]) for run in evidence.of(task, "itt", "exact")}
        for variant, label in VARIANTS.items():
            runs = evidence.of(task, "itt", variant)
            found = [float(run.returns[-1]) for run in runs]
            pairs = [(exact[run.seed], float(run.returns[-1])) for run in runs if run.seed in exact]
            p = float(paired_t_test(*np.array(pairs).T).p[0]) if variant != "exact" and pairs else float("nan")
            comparable = "-" if np.isnan(p) else "comparable" if p >= 0.05 else "differs"
            cut = " (cut)" if any(run.cut for run in runs) and not np.isnan(p) else ""
            ran = ran_or_not(evidence, task, variant)
            rows.append((task, label, spread(found) if found else "not run", p_value(p), comparable + cut, ran))
    headings = ("task", "search", "final return, ours", "p against exact", "verdict", "ran")
    note = (
        "The paper prints curves only and finds that hashing keeps a good performance: *comparable* means that a "
        "paired t-test of final returns does not tell it from exact search at 0.05. N = 2¹⁴ and m = 6 for "
        "HalfCheetah, N = 2¹⁰ and m = 3 elsewhere. We keep candidates for a rollout: an index over candidates that "
        "are redrawn at every step would cost more than looking at all of them."
    )
    figures = comparison_figure(evidence, "srp-curves", VARIANTS)
    return Findings([Table("Final returns by search", headings, rows, note)], figures)


RESULT = Result("srp-curves", "Learning curves with hashed search", "Figures 4 and 7", plan, conclude)
