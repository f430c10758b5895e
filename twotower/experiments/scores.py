"""Final scores of ITT, one-tower and explicit policies on the 15 tasks."""

import numpy as np

from twotower.analysis.statistics import bootstrap_band, interquartile_mean
from twotower.config import PolicyKind
from twotower.experiments.plan import Choice, Planned, base, planned, printed_row
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import (
    KIND_NAMES,
    VERDICT_RULE,
    Published,
    emphasised,
    not_run,
    number,
    spread,
    verdict,
    what_ran,
)  # fmt: skip
from twotower.recipes import names
from twotower.recipes.published import table

SEEDS = 10


def plan(choice: Choice, tasks: tuple[str, ...] = ()) -> list[Planned]:
    """Every task with every policy and seed."""
    return [
        planned(choice, base(task, kind, seed))
        for task in choice.tasks or tasks or tuple(names())
        for kind in choice.kinds()
        for seed in range(choice.num_seeds(SEEDS))
    ]


def printed(task: str, kind: str) -> Published | None:
    """The paper's final score."""
    found = printed_row(table("final_scores_mean_std_10_seeds"), task)
    return Published(found[kind][0], found[kind][1], SEEDS) if kind in found else None


def conclude(evidence: Evidence) -> Findings:
    """The table of final scores and one of the fresh evaluations."""
    final, fresh = [], []
    for task in evidence.tasks():
        means, ours, theirs, verdicts, remarks = [], [], [], [], []
        for kind in evidence.choice.kinds():
            runs, published = evidence.of(task, kind), printed(task, kind)
            scores = [float(run.returns[-1]) for run in runs]
            means.append(float(np.mean(scores)) if scores else float("nan"))
            ours.append(spread(scores) if scores else not_run(evidence.planned(task, kind)))
            theirs.append("not printed" if published is None else str(published))
            verdicts.append(f"{KIND_NAMES[kind]} {verdict(published, scores, any(run.cut for run in runs))}")
            remarks.append(what_ran(runs))
            fresh.append(_fresh(task, kind, evidence))
        said = list(dict.fromkeys(remark for remark in remarks if remark))
        final.append((task, *_pairs(theirs, emphasised(ours, means)), "; ".join(verdicts), " / ".join(said)))
    kinds = [KIND_NAMES[kind] for kind in evidence.choice.kinds()]
    headings = ("task", *(f"{kind}, {whose}" for kind in kinds for whose in ("published", "ours")), "verdict", "ran")
    return Findings(
        [
            Table("Final scores", headings, final, f"Return of the last iteration's one evaluation episode, mean ± "
                  f"standard deviation over seeds; our best bold, second underlined. {VERDICT_RULE}"),
            Table("Fresh evaluations of the final policies", FRESH_HEADINGS, fresh, "Each seed's final policy over "
                  "fresh episodes. IQM: mean of the middle half of the seeds, with a stratified bootstrap interval."),
        ]
    )  # fmt: skip


FRESH_HEADINGS = ("task", "policy", "episodes a seed", "mean ± std over seeds", "IQM", "95 % interval of the IQM")


def _fresh(task: str, kind: PolicyKind, evidence: Evidence) -> tuple[str, ...]:
    runs = evidence.of(task, kind)
    if not runs:
        return task, KIND_NAMES[kind], "-", "not run", "-", "-"
    means = [run.evaluation for run in runs]
    episodes = str(runs[0].planned.config.evaluation_episodes)
    band = bootstrap_band(means)
    iqm = float(interquartile_mean(np.array(means)[:, None]))
    interval = f"{number(float(band.low))} to {number(float(band.high))}" if len(means) > 1 else "one seed"
    return task, KIND_NAMES[kind], episodes, spread(means), number(iqm), interval


def _pairs(first: list[str], second: list[str]) -> list[str]:
    return [cell for pair in zip(first, second, strict=True) for cell in pair]


RESULT = Result("scores", "Final scores", "Tables 1 and 6", plan, conclude, compares_policies=True)
