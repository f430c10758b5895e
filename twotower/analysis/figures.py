"""Pictures of a run; matplotlib is imported only when one is drawn."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from twotower.errors import UserError
from twotower.files.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette: told apart by colour-blind readers.
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#8C8C8C"


def draw_curve(metrics: Sequence[Mapping[str, Any]], path: Path, title: str) -> None:
    """Draw a run's learning curve from its metrics and write it as a PNG, atomically."""
    if not metrics:
        raise UserError("There is no curve to draw before the first iteration is done.")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError as error:
        raise UserError('Pictures need matplotlib: install it with pip install "twotower[plot]"') from error
    layout = ConstrainedLayoutEngine(w_pad=0.12, h_pad=0.08)  # inches; the last tick's label reaches beyond the axes
    figure = Figure(figsize=(7, 4.2), dpi=150, layout=layout)
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    _draw_returns(axes, metrics)
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles[::-1], labels[::-1], loc="outside lower center", ncols=4, frameon=False, fontsize="small")
    _add_steps_axis(axes, _column(metrics, "iteration"), _column(metrics, "steps"))
    axes.set_title(title, loc="left", fontweight="bold", parse_math=False)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    write_atomically(path, picture.getvalue())


def _column(metrics: Sequence[Mapping[str, Any]], name: str) -> np.ndarray:
    """One figure of every row, (rows,) float64; NaN, a gap in the line, where a row has none."""
    values = [row.get(name) for row in metrics]
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _draw_returns(axes: "Axes", metrics: Sequence[Mapping[str, Any]]) -> None:
    """The return of θ_k, the best so far and the population, over iterations."""
    from matplotlib.ticker import MaxNLocator

    iterations = _column(metrics, "iteration")
    dot = "o" if len(metrics) == 1 else None  # a line through one point is invisible
    low, high = _column(metrics, "population_p10"), _column(metrics, "population_p90")
    if np.isfinite(low - high).any():
        axes.fill_between(iterations, low, high, color=GREY, alpha=0.25, lw=0, label="population, 10–90 %")
    for name, label, colour, width in (
        ("population_mean", "population mean", GREY, 1.4),
        ("best", "best so far", ORANGE, 1.4),
        ("return", "θₖ, one episode", BLUE, 1.4 if len(metrics) < 500 else 0.5),
    ):
        values = _column(metrics, name)
        if np.isfinite(values).any():
            axes.plot(iterations, values, color=colour, lw=width, marker=dot, label=label)
    axes.set_xlabel("iteration")
    axes.set_ylabel("return (undiscounted, per episode)")
    axes.margins(x=0.01)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axes.grid(alpha=0.25, lw=0.6)
    axes.spines["right"].set_visible(False)


def _add_steps_axis(axes: "Axes", iterations: np.ndarray, steps: np.ndarray) -> None:
    """Environment steps along the top; iterations differ in length, so the ticks are not evenly spaced."""
    from matplotlib.ticker import EngFormatter, MaxNLocator

    known = np.isfinite(steps)
    if not known.any():
        return
    iterations, steps = iterations[known], steps[known]
    ticks = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]).tick_values(steps[0], steps[-1]) if len(steps) > 1 else steps
    ticks = ticks[(ticks >= steps[0]) & (ticks <= steps[-1])]
    top = axes.twiny()
    top.set_xlim(axes.get_xlim())
    top.set_xticks(np.interp(ticks, steps, iterations), [EngFormatter(sep="")(tick) for tick in ticks])
    top.set_xlabel("environment steps")
    top.spines["right"].set_visible(False)
