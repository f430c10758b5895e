"""Paired t-tests of final returns and of iterations to a threshold, with effect sizes and Holm's correction."""

import numpy as np

from twotower.analysis.statistics import holm, paired_t_test
from twotower.experiments import scores
from twotower.experiments.plan import Choice, Planned, printed_row
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import KIND_NAMES, not_run, number, p_value, what_ran
from twotower.recipes import find, names
from twotower.recipes.published import table

RETURNS, ITERATIONS = table("paired_t_test_final_return"), table("paired_t_test_iterations")
LEVEL = 0.05


def plan(choice: Choice) -> list[Planned]:
    """The runs of the tasks that the paper tests, or of the user's."""
    printed = tuple(name for name in names() if (recipe := find(name)) and recipe.paper_ids[0] in RETURNS)
    return scores.plan(choice, printed)


def conclude(evidence: Evidence) -> Findings:
    """Both tables of t-tests."""
    return Findings([_returns(evidence), _iterations(evidence)])


def _pairs(first: list[Finished], second: list[Finished]) -> list[tuple[Finished, Finished]]:
    """Runs of the same seed."""
    seeds = {run.seed: run for run in second}
    return [(run, seeds[run.seed]) for run in first if run.seed in seeds]


def _returns(evidence: Evidence) -> Table:
    """Whether final returns differ: ITT against the other two."""
    found = []
    for task in evidence.tasks():
        for other in evidence.choice.kinds():
            if other == "itt":
                continue
            pairs = _pairs(evidence.of(task), evidence.of(task, other))
            printed = printed_row(RETURNS, task)
            found.append((task, other, pairs, printed.get(f"itt_{other}", float("nan"))))
    tests = [
        paired_t_test([a.returns[-1] for a, _ in pairs], [b.returns[-1] for _, b in pairs]) if pairs else None
        for _, _, pairs, _ in found
    ]
    corrected = holm([float("nan") if test is None else float(test.p[0]) for test in tests])
    rows = []
    for (task, other, pairs, printed), test, holm_p in zip(found, tests, corrected, strict=True):
        printed = float("nan") if printed is None else printed
        if test is None:
            lacking = [*evidence.planned(task), *evidence.planned(task, other)]
            rows.append((task, KIND_NAMES[other], p_value(printed), not_run(lacking), "-", "-", "-", "not run", ""))
            continue
        p, same = float(test.p[0]), [a.returns[-1] == b.returns[-1] for a, b in pairs]
        said = "equal in every pair" if all(same) else p_value(p)
        cells = (p_value(printed), said, p_value(float(holm_p)), number(float(test.difference[0])))
        effect = number(float(test.effect_size[0])) if np.isfinite(test.effect_size[0]) else "-"
        cut = any(run.cut for pair in pairs for run in pair)
        rows.append(
            (task, KIND_NAMES[other], *cells, effect, _verdict(printed, p, cut), what_ran([a for a, _ in pairs]))
        )
    headings = ("task", "ITT against", "p, published", "p, ours", "p, Holm", "mean difference", "Cohen's d", "verdict",
                "ran")  # fmt: skip
    note = (
        "Two-sided paired t-tests of the last iteration's return; pairs share a seed. Holm's correction takes all rows "
        "as one family. Verdict: whether both fall on the same side of 0.05, uncorrected as in the paper."
    )
    return Table("Final returns", headings, rows, note)


def _iterations(evidence: Evidence) -> Table:
    """Whether ITT reaches the paper's threshold in fewer iterations than the one-tower policy."""
    rows = []
    for task in evidence.tasks():
        printed = printed_row(ITERATIONS, task)
        if not printed or not {"itt", "iot"} <= set(evidence.choice.kinds()):
            continue
        pairs = _pairs(evidence.of(task), evidence.of(task, "iot"))
        theirs = f"{printed['itt']:g} / {printed['iot']:g}"
        if not pairs:
            why = not_run([*evidence.planned(task), *evidence.planned(task, "iot")])
            rows.append((task, number(printed["threshold"]), theirs, why, p_value(printed["p"]), "-", "not run", ""))
            continue
        reached = [[first_passage(run, printed["threshold"]) for run in pair] for pair in pairs]
        ours, others = np.array(reached, dtype=np.float64).T
        missed = sum(run.returns.max() < printed["threshold"] for pair in pairs for run in pair)
        p = float(paired_t_test(ours, others).p[0])
        cut = any(run.cut for pair in pairs for run in pair)
        mean = f"{number(float(ours.mean()))} / {number(float(others.mean()))}"
        ran = what_ran([a for a, _ in pairs]) + (f"; {missed} runs never reached it" if missed else "")
        cells = (theirs, mean, p_value(printed["p"]), p_value(p), _verdict(printed["p"], p, cut), ran)
        rows.append((task, number(printed["threshold"]), *cells))
    headings = ("task", "threshold", "iterations ITT / IOT, published", "ours", "p, published", "p, ours", "verdict",
                "ran")  # fmt: skip
    note = "A run that never reaches the threshold counts with all its iterations, as the paper's counts suggest."
    return Table("Iterations to the threshold", headings, rows, note)


def first_passage(run: Finished, threshold: float) -> int:
    """The first iteration whose evaluation reaches a return; all iterations if none does."""
    reached = np.flatnonzero(run.returns >= threshold)
    return int(reached[0]) + 1 if reached.size else len(run.returns)


def _verdict(printed: float, ours: float, cut: bool) -> str:
    if np.isnan(printed):
        return "nothing printed"
    if np.isnan(ours):
        return "no test"
    same = (printed < LEVEL) == (ours < LEVEL)
    return ("same side" if same else "other side") + (" (cut)" if cut else "")


RESULT = Result("t-tests", "Paired t-tests", "Tables 14 and 15", plan, conclude, compares_policies=True)
