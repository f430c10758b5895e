"""The report's tables: what the numbers are, and how a reader gets them."""

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from twotower import recipes
from twotower.analysis.report.gather import RunRecord
from twotower.analysis.report.groups import Curve, Group, differences
from twotower.analysis.statistics import bootstrap_band, holm, interquartile_mean, mean_band, mean_std, paired_t_test

PHASES = ("draw directions", "episodes", "wait for the slowest worker", "messages", "update")
UNKNOWN = "–"


class Seen(NamedTuple):
    """What was found out about a run beside what its folder says."""

    ties: float | None = None
    why_not: str = ""


def number(value: float | None) -> str:
    """A figure with about four digits."""
    if value is None or not np.isfinite(value):
        return UNKNOWN
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
    return text.replace("-", "−")


def percent(share: float | None) -> str:
    """A share of one in per cent."""
    return UNKNOWN if share is None or not np.isfinite(share) else f"{100 * share:.1f} %"


def table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], words: Sequence[int] = ()) -> str:
    """A table that scrolls sideways on a narrow screen; a row's first cell is its heading; cells are HTML.

    The caption's first sentence names the table, and the rest explains it in a note that does not scroll.
    """
    caption, _, note = caption.partition(". ")
    heads = "".join(f'<th scope="col">{escape(name)}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row">{row[0]}</th>'
        + "".join(f"<td{' class=words' if k in words else ''}>{cell}</td>" for k, cell in enumerate(row[1:], start=1))
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(caption)}"><table>'
        f"<caption>{escape(caption)}</caption><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table></div>"
        + (f'<p class="note">{escape(note)}</p>' if note else "")
    )


def comparison(task: str, groups: Sequence[Group]) -> str:
    """Every group's evaluations, with intervals, and the paper's where it has one."""
    recipe = recipes.find(task)
    published = recipe.published_scores() if recipe else {}
    rows = []
    means = [float(np.mean(list(group.scores().values()))) if group.scores() else -np.inf for group in groups]
    for group, mean in zip(groups, means, strict=True):
        scores = list(group.scores().values())
        cells = [escape(group.name), f"{len(scores)} of {len(group.runs)}"]
        if scores:
            interval, iqm = mean_band(scores), number(float(interquartile_mean(np.array(scores)[:, None])))
            resampled = bootstrap_band(scores)
            best = " class=best" if mean == max(means) and sum(map(np.isfinite, means)) > 1 else ""
            cells += [
                f"<span{best}>{number(mean)}</span>",
                number(float(mean_std(scores).std[0])),
                _between(interval.low[0], interval.high[0]),
                iqm,
                _between(float(resampled.low), float(resampled.high)) if len(scores) > 1 else UNKNOWN,
            ]
        else:
            cells += [UNKNOWN] * 5
        kind = group.runs[0].config.policy.kind
        cells += [f"{number(published[kind][0])} ± {number(published[kind][1])}"] if kind in published else []
        cells += [UNKNOWN] if published and kind not in published else []
        rows.append(cells)
    head = ["configuration", "runs evaluated", "mean", "std over runs", "95 % of the mean", "IQM", "95 % of the IQM"]
    caption = (
        "Returns of the recorded evaluations. A run counts once, with the mean of its fresh episodes; "
        "the mean's interval is Student's, the interquartile mean's a bootstrap over runs."
    )
    return table(caption, head + (["paper, 10 seeds, its budget"] if published else []), rows)


def paired(groups: Sequence[Group]) -> str:
    """Every two groups that share seeds, tested seed by seed."""
    found = []
    for k, first in enumerate(groups):
        for second in groups[k + 1 :]:
            a, b = first.scores(), second.scores()
            seeds = sorted(a.keys() & b.keys())
            if len(seeds) > 1:
                test = paired_t_test([a[seed] for seed in seeds], [b[seed] for seed in seeds])
                found.append((first.name, second.name, len(seeds), *(float(part[0]) for part in test)))
    if not found:
        return '<p class="note">No two configurations have two seeds in common, so nothing is tested.</p>'
    corrected = holm([row[-1] for row in found])
    rows = [
        [f"{escape(a)} − {escape(b)}", str(n), number(difference), number(effect), probability(p), probability(holm_p)]
        for (a, b, n, difference, effect, p), holm_p in zip(found, corrected.tolist(), strict=True)
    ]
    head = ["difference", "seeds in common", "mean", "Cohen's d", "p", "p, Holm"]
    return table("Paired tests. Two-sided t-tests of runs with the same seed, corrected over this table.", head, rows)


def probability(p: float) -> str:
    """A p-value."""
    return UNKNOWN if not np.isfinite(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def configuration(groups: Sequence[Group]) -> str:
    """The choices in which the runs differ."""
    rows = [[f"<code>{escape(name)}</code>", *map(escape, cells)] for name, cells in differences(groups)]
    if not rows:
        return '<p class="note">The runs differ in nothing but their seeds.</p>'
    return table(
        "What differs between the runs. Where a configuration's own runs differ, all values are listed.",
        ["option", *(group.name for group in groups)],
        rows,
    )


def runs(groups: Sequence[Group], seen: dict[str, Seen]) -> str:
    """One row a run."""
    rows = []
    for group in groups:
        for run in group.runs:
            ties = seen.get(str(run.path), Seen())
            notes = [*run.notes, *audited(run), *([f"Ties: {ties.why_not}"] if ties.why_not else [])]
            evaluation = run.file.evaluation if run.file else None
            rows.append(
                [
                    escape(run.path.name or str(run.path)),
                    escape(group.name),
                    str(run.config.seed),
                    f"{int(last(run, 'iteration')):,}" if run.rows and np.isfinite(last(run, "iteration")) else "0",
                    f"{last(run, 'steps'):,.0f}" if np.isfinite(last(run, "steps")) else UNKNOWN,
                    f"{number(evaluation.mean)} ± {number(evaluation.std)}" if evaluation else UNKNOWN,
                    number(last(run, "best")),
                    percent(lately(run, "saturation")),
                    percent(ties.ties),
                    number(lately(run, "steps_per_s")),
                    clock(last(run, "seconds")),
                    escape(" ".join(notes)) or UNKNOWN,
                ]
            )
    head = [
        "run", "configuration", "seed", "iterations", "steps", "evaluation", "best episode", "saturation", "ties",
        "steps/s", "time", "notes",
    ]  # fmt: skip
    caption = (
        "All runs. Saturation is the mean of |action| over a box scaled to [−1, 1], and steps/s the speed, both over "
        "the last tenth of training; ties is the share of an evaluation episode's states in which several candidates "
        "score best, so that the first of them is taken."
    )
    return table(caption, head, rows, words=(11,))


def audited(run: RunRecord) -> list[str]:
    """What audits said of the run's search over the last tenth of training, where there were any."""
    regret, recall, visited = (lately(run, f"search_{name}") for name in ("regret", "recall", "visited"))
    if visited is None:
        return []
    return [f"Search: regret {percent(regret)}, recall {percent(recall)}, {visited:,.0f} candidates scored a choice."]


def points(names: Sequence[str], curves: Sequence[Curve]) -> str:
    """The numbers behind a chart, for whoever cannot see it."""
    steps = np.linspace(min(c.steps[0] for c in curves), max(c.steps[-1] for c in curves), 9)
    columns = [np.interp(steps, c.steps, c.mean, left=np.nan, right=np.nan) for c in curves]
    rows = [[f"{step:,.0f}", *(number(column[k]) for column in columns)] for k, step in enumerate(steps)]
    body = table("Mean return at nine points of the curves", ["environment steps", *names], rows)
    return f"<details><summary>Numbers behind the curves</summary>{body}</details>"


def phases(group: Group) -> list[float] | None:
    """Seconds a group's runs spent in each of PHASES; None where their metrics do not say."""
    sums = np.zeros(len(PHASES))
    for run in group.runs:
        names = ("ask", "rollouts", "slowest_worker", "median_worker", "tell")
        ask, rollouts, slowest, median, tell = (run.column(f"seconds_{name}") for name in names)
        parts = np.array([ask, median, slowest - median, rollouts - slowest, tell])
        sums += np.maximum(parts, 0.0)[:, np.isfinite(parts).all(axis=0)].sum(axis=1)
    return sums.tolist() if sums.sum() > 0 else None


def last(run: RunRecord, name: str) -> float:
    """A figure of the last iteration that has it."""
    values = run.column(name)
    values = values[np.isfinite(values)]
    return float(values[-1]) if len(values) else np.nan


def lately(run: RunRecord, name: str) -> float | None:
    """The mean of a figure over the last tenth of training."""
    values = run.column(name)
    values = values[-max(len(values) // 10, 1) :]
    values = values[np.isfinite(values)]
    return float(values.mean()) if len(values) else None


def clock(seconds: float) -> str:
    """Seconds as h:mm:ss."""
    if not np.isfinite(seconds):
        return UNKNOWN
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"


def _between(low: float, high: float) -> str:
    return f"{number(low)} to {number(high)}" if np.isfinite(low) and np.isfinite(high) else UNKNOWN
