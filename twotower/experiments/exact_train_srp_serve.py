"""Train with exact search and serve with signed random projections: final scores of all three combinations."""

from dataclasses import replace

from twotower.config import TrainConfig
from twotower.experiments import srp_curves
from twotower.experiments.plan import Choice, Planned, printed_row, variants_planned
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import VERDICT_RULE, Published, not_run, spread, verdict, what_ran
from twotower.recipes.published import table
from twotower.training import evaluate_policy

SEEDS = 5
TASKS = ("swimmer", "lunarlander", "hopper", "halfcheetah")
PRINTED = table("train_itt_infer_srp_5_seeds")
CASES = {"itt_itt": ("exact", "exact"), "itt_srp": ("exact", "srp"), "srp_srp": ("srp", "srp")}


def plan(choice: Choice) -> list[Planned]:
    """Exact and hashed runs; those of `srp-curves`, but for Hopper's 500 iterations."""
    return variants_planned(choice, TASKS, ("exact", "srp"), _configuration, SEEDS)


def _configuration(config: TrainConfig, variant: str) -> TrainConfig:
    printed = printed_row(PRINTED, config.task)
    config = replace(config, iterations=printed.get("iterations", config.iterations))
    return srp_curves.configuration(config, variant)


def conclude(evidence: Evidence) -> Findings:
    """Fresh evaluations of every combination."""
    rows = []
    for task in evidence.tasks():
        printed = printed_row(PRINTED, task)
        for case, (trained, served) in CASES.items():
            runs = evidence.of(task, "itt", trained)
            published = Published(printed[case][0], printed[case][1], SEEDS) if case in printed else None
            theirs = "not printed" if published is None else str(published)
            if not runs:
                why = not_run(evidence.planned(task, "itt", trained))
                rows.append((task, trained, served, theirs, why, "not run", "-"))
                continue
            scores = [run.evaluation if served == trained else _served(run, served) for run in runs]
            judged = verdict(published, scores, any(run.cut for run in runs))
            rows.append((task, trained, served, theirs, spread(scores), judged, what_ran(runs)))
    headings = ("task", "trained with", "served with", "published", "ours", "verdict", "ran")
    note = (
        "Mean ± standard deviation over seeds of the mean return of fresh episodes. Candidates are kept for a rollout; "
        f"N and m as in srp-curves. {VERDICT_RULE}"
    )
    return Findings([Table("Train with one search, serve with another", headings, rows, note)])


def _served(run: Finished, search: str) -> float:
    """The mean return of a run's final policy over as many fresh episodes, with another search."""
    policy = run.policy
    served = srp_curves.configuration(policy.config, search)
    return evaluate_policy(replace(policy, config=served), policy.config.evaluation_episodes).mean


RESULT = Result(
    "exact-train-srp-serve", "Exact search in training, hashing in serving", "Table 13", plan, conclude,
    extra_seconds=30,
)  # fmt: skip
