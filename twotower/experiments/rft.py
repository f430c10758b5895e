"""Policies that sample their action from a random feature tree: steps to a threshold, and how near to the softmax."""

from dataclasses import replace

import numpy as np

from twotower.analysis.episode import offered, watch
from twotower.config import TrainConfig
from twotower.experiments.comparison import comparison_figure
from twotower.experiments.plan import Choice, Planned, printed_row, variants_planned
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import not_run, number, spread, what_ran
from twotower.experiments.thresholds import ITERATIONS, PRINTED, steps_to, verdict
from twotower.policies import make_policy
from twotower.policies.two_tower import TwoTower
from twotower.search import RandomFeatureTree

SEEDS = 6
VARIANTS = {"rft": "sampled from the tree", "softmax": "sampled from the exact softmax", "argmax": "argmax"}
FEATURES, LEAF, COUNT, QUERIES = 256, 64, 1024, 50


def plan(choice: Choice) -> list[Planned]:
    """Sampling from the tree, from the exact softmax, and no sampling at all."""
    return variants_planned(choice, ITERATIONS, VARIANTS, _configuration, SEEDS)


def _configuration(config: TrainConfig, variant: str) -> TrainConfig:
    tree = variant == "rft"
    return replace(
        config,
        iterations=ITERATIONS.get(config.task, config.iterations),
        candidates=replace(config.candidates, count=COUNT, refresh="rollout"),
        policy=replace(
            config.policy, search="rft" if tree else "auto", choice="argmax" if variant == "argmax" else "sample"
        ),
        search=replace(config.search, features=FEATURES, leaf=LEAF) if tree else config.search,
    )


def conclude(evidence: Evidence) -> Findings:
    """Steps to the threshold, final returns, and distances to the softmax."""
    rows = []
    for task in evidence.tasks():
        printed = printed_row(PRINTED, task)
        for variant, label in VARIANTS.items():
            runs = evidence.of(task, "itt", variant)
            key = {"rft": "itt_rft", "argmax": "itt"}.get(variant, "")
            theirs = number(printed[key]) if key in printed else "not printed"
            if not runs:
                why = not_run(evidence.planned(task, "itt", variant))
                rows.append((task, label, theirs, why, "-", "-", "not run", "-"))
                continue
            steps = [steps_to(run.rows, printed["threshold"]) for run in runs] if printed else []
            reached = [count for count in steps if count is not None]
            ours = number(float(np.mean(reached))) if reached else "never reached"
            distance = number(float(np.mean([total_variation(run) for run in runs])))
            judged = verdict(reached, runs, printed[key]) if key in printed else "nothing printed"
            cells = (ours if printed else "-", spread([float(run.returns[-1]) for run in runs]), distance)
            rows.append((task, label, theirs, *cells, judged, what_ran(runs)))
    headings = ("task", "choice of action", "steps to the threshold, published", "ours", "final return, ours",
                "total variation to the softmax", "verdict", "ran")  # fmt: skip
    note = (
        f"N = {COUNT:,} candidates kept for a rollout, r = {FEATURES} random features, leaves of {LEAF} among which "
        "the softmax is exact. Total variation: between a tree's distribution and the exact softmax over the same "
        f"candidates, mean over {QUERIES} states of an evaluation episode of the final policy; the rows without a tree "
        "tell what a tree would do there. Verdict: as in thresholds. The paper does not say which features or how many."
    )
    figures = comparison_figure(evidence, "rft-curves", VARIANTS, references=False)
    return Findings([Table("Random feature trees", headings, rows, note)], figures)


def total_variation(run: Finished) -> float:
    """How far a tree over an evaluation episode's candidates is from the exact softmax, over the states it met."""
    file = run.policy
    config, spec = file.config, file.spec
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search)
    assert isinstance(policy, TwoTower)
    observations = watch(file, last=1000).observations
    chosen = observations[np.unique(np.linspace(0, len(observations) - 1, QUERIES).astype(int))]
    latents = policy.action_latents(file.theta, offered(policy, file, 0, 0))
    tree = RandomFeatureTree(features=FEATURES, leaf=LEAF).build(latents, seed=config.seed)
    return float(tree.total_variation(policy.state_latents(file.theta, chosen)).mean())


RESULT = Result("rft", "Policies that sample from a random feature tree", "Table 8", plan, conclude, extra_seconds=30)
