"""What results that compare variants of ITT share: their figure, and what stands behind a cell."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from twotower.experiments import scores
from twotower.experiments.curves import curve
from twotower.experiments.panels import Panel, panels
from twotower.experiments.result import Evidence
from twotower.experiments.text import not_run, what_ran

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def comparison_figure(
    evidence: Evidence, name: str, variants: Mapping[str, str], references: bool = True
) -> "dict[str, Callable[[], Figure]]":
    """Learning curves of the variants, a panel a task; none if nothing ran."""
    drawn = []
    for task in evidence.tasks():
        found = {label: evidence.of(task, "itt", variant) for variant, label in variants.items()}
        curves = [curve(label, runs) for label, runs in found.items() if runs]
        published = scores.printed(task, "itt") if references else None
        if curves:
            drawn.append(Panel(task, curves, {} if published is None else {"ITT": published.mean}))
    label = "return of θₖ: mean and 10th to 90th percentile over seeds"
    return {name: panels(drawn, "iteration", label)} if drawn else {}


def ran_or_not(evidence: Evidence, task: str, variant: str) -> str:
    """What ran, or why nothing did."""
    runs = evidence.of(task, "itt", variant)
    return what_ran(runs) if runs else not_run(evidence.planned(task, "itt", variant))
