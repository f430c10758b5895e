"""Time of training against the number of candidates: hashed ITT and the one-tower policy, and what the paper lacks."""

from dataclasses import replace
from typing import Any

import numpy as np

from twotower.analysis.statistics import paired_t_test
from twotower.config import SearchConfig, TrainConfig
from twotower.experiments.panels import Curve, Panel, panels
from twotower.experiments.plan import Choice, Planned, base, printed_row
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import number, p_value
from twotower.experiments.timing import NOTE, measured, seconds_per_step, timed
from twotower.recipes.published import table

TASKS = ("halfcheetah", "walker2d")
EXPONENTS = (10, 11, 12, 13, 14)
ROWS: Any = table("srp_wall_clock_minutes_30_cores")
PRINTED = {
    env: {row["c"]: row for row in ROWS if row["env"] == env} for env in dict.fromkeys(row["env"] for row in ROWS)
}
METHODS = {"srp": "ITT, SRP", "exact": "ITT, all candidates", "auto": "ITT, our exact search", "iot": "IOT"}
SEEDS = 2


def plan(choice: Choice) -> list[Planned]:
    """Every method at every number of candidates; a quick run takes the ends and the middle."""
    exponents = EXPONENTS if choice.size == "paper" else EXPONENTS[::2]
    return [
        timed(
            choice, _configuration(task, method, exponent, seed), f"{method} 2^{exponent}", iterations=4, directions=3,
            steps_per_episode=None if choice.size == "paper" else 250,
        )
        for task in choice.tasks or TASKS
        for method in METHODS
        for exponent in exponents
        for seed in range(choice.seeds or (1 if choice.size == "quick" else SEEDS))
    ]  # fmt: skip


def _configuration(task: str, method: str, exponent: int, seed: int) -> TrainConfig:
    config = base(task, "iot" if method == "iot" else "itt", seed)
    searches = {"srp": "srp_paper", "exact": "brute_force", "auto": "auto", "iot": config.policy.search}
    return replace(
        config,
        candidates=replace(config.candidates, count=2**exponent, refresh="rollout"),
        policy=replace(config.policy, search=searches[method]),
        # m = 3 at 2^10 and 6 at 2^14 are the paper's; between them it prints none.
        search=SearchConfig(bits=3 + max(exponent - 11, 0)) if method == "srp" else SearchConfig(),
    )


def conclude(evidence: Evidence) -> Findings:
    """Seconds for a million steps, method by method, and IOT's as a multiple of hashed ITT's."""
    rows = []
    exponents = sorted({int(run.variant.rpartition("^")[2]) for run in evidence.plan})
    for task in evidence.tasks():
        for exponent in exponents:
            runs = {method: _runs(evidence, task, method, exponent) for method in METHODS}
            times = {method: np.array([seconds_per_step(run) for run in found]) for method, found in runs.items()}
            printed = printed_row(PRINTED, task).get(exponent)
            theirs = f"{number(printed['iot'] / printed['itt_srp'])}×" if printed else "not printed"
            cells = [number(1e6 * times[method].mean()) if runs[method] else "not run" for method in METHODS]
            if runs["srp"] and runs["iot"]:
                ratio = times["iot"].mean() / times["srp"].mean()
                p = paired_t_test(times["iot"], times["srp"]).p[0] if len(runs["srp"]) == len(runs["iot"]) else np.nan
                judged = "ITT-SRP faster in both" if printed and ratio > 1 else "slower" if ratio < 1 else "faster"
                rows.append((task, f"2^{exponent}", theirs, f"{number(ratio)}×", p_value(float(p)), *cells, judged,
                             measured(runs["srp"])))  # fmt: skip
            else:
                rows.append((task, f"2^{exponent}", theirs, "not run", "-", *cells, "not run", "-"))
    headings = ("task", "N", "IOT / ITT-SRP, published", "ours", "p", *(f"{name}, s per million steps" for name in
                METHODS.values()), "verdict", "measured")  # fmt: skip
    note = (
        "Two rows the paper lacks: exact ITT that looks at every candidate, and our exact search. Candidates, with "
        "their latents and index, are kept for an episode, which is 1,000 steps (250 in a quick run), and building "
        f"the index counts. Seven members an iteration. {NOTE}"
    )
    return Findings([Table("Time against the number of candidates", headings, rows, note)], _figure(evidence))


def _runs(evidence: Evidence, task: str, method: str, exponent: int) -> list[Finished]:
    return evidence.of(task, "iot" if method == "iot" else "itt", f"{method} 2^{exponent}")


def _figure(evidence: Evidence):
    exponents = sorted({int(run.variant.rpartition("^")[2]) for run in evidence.plan})
    items = []
    for task in evidence.tasks():
        curves = []
        for method, label in METHODS.items():
            found = {e: runs for e in exponents if (runs := _runs(evidence, task, method, e))}
            seconds = [1e6 * float(np.mean([seconds_per_step(run) for run in runs])) for runs in found.values()]
            if found:
                curves.append(Curve(label, 2.0 ** np.array(list(found)), np.array(seconds)))
        if curves:
            items.append(Panel(task, curves))
    label = "seconds for a million steps"
    return {"srp-wall-clock": panels(items, "candidates N", label, points=True, log="xy")} if items else {}


RESULT = Result("srp-wall-clock", "Time against the number of candidates", "Table 12", plan, conclude)
