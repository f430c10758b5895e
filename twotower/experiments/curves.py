"""Learning curves of the three policies: the paper's percentiles, and its confidence intervals."""

from collections.abc import Callable

import numpy as np

from twotower.analysis.statistics import Band, mean_band, percentile_band
from twotower.experiments import scores
from twotower.experiments.panels import Curve, Panel, panels
from twotower.experiments.records import Finished
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import KIND_NAMES, not_run, number, what_ran

BANDS: dict[str, tuple[str, Callable[[np.ndarray], Band]]] = {
    "percentiles": ("10th to 90th percentile", percentile_band),
    "confidence": ("95 % confidence interval of the mean", mean_band),
}


def curve(label: str, runs: list[Finished], band: Callable[[np.ndarray], Band] = percentile_band) -> Curve:
    """The mean return of θ_k over seeds, iteration by iteration, in a band."""
    values = np.stack([run.returns for run in runs])  # (seeds, iterations)
    keep = thinned(values.shape[1])
    limits = band(values)
    if len(runs) == 1:
        return Curve(label, keep + 1, values.mean(axis=0)[keep])
    return Curve(label, keep + 1, values.mean(axis=0)[keep], limits.low[keep], limits.high[keep])


def thinned(count: int, most: int = 200) -> np.ndarray:
    """At most so many of the first `count` indices, spread evenly, first and last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


def conclude(evidence: Evidence) -> Findings:
    """One figure for each band, and what stands behind every curve."""
    rows, figures = [], {}
    for task in evidence.tasks():
        for kind in evidence.choice.kinds():
            runs = evidence.of(task, kind)
            if not runs:
                rows.append((task, KIND_NAMES[kind], not_run(evidence.planned(task, kind)), "-", "-"))
                continue
            best = np.stack([run.returns for run in runs]).mean(axis=0).max()
            final = np.mean([run.returns[-1] for run in runs])
            rows.append((task, KIND_NAMES[kind], what_ran(runs), number(float(final)), number(float(best))))
    for name, (label, band) in BANDS.items():
        drawn = [panel for task in evidence.tasks() if (panel := _panel(evidence, task, band)).curves]
        if drawn:
            y_label = f"return of θₖ: mean and {label} over seeds"
            figures[f"curves-{name}"] = panels(drawn, "iteration", y_label)
    headings = ("task", "policy", "ran", "mean at the end", "highest mean on the way")
    note = "Dashed lines in the figures: the paper's final means."
    return Findings([Table("What the curves show", headings, rows, note)], figures)


def _panel(evidence: Evidence, task: str, band: Callable[[np.ndarray], Band]) -> Panel:
    curves, references = [], {}
    for kind in evidence.choice.kinds():
        runs, published = evidence.of(task, kind), scores.printed(task, kind)
        if runs:
            curves.append(curve(KIND_NAMES[kind], runs, band))
        if runs and published is not None:
            references[KIND_NAMES[kind]] = published.mean
    return Panel(task, curves, references)


RESULT = Result("curves", "Learning curves", "Figures 3, 6 and 8", scores.plan, conclude, compares_policies=True)
