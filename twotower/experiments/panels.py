"""Figures of one style: small panels that share colours, a legend and the paper's values as dashed lines."""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from twotower.errors import UserError
from twotower.files.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by colour-blind readers; and a second cue, for print without colour.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
LINES = ("-", (0, (5, 1.5)), (0, (1.5, 1.2)), (0, (5, 1.5, 1.5, 1.5)), (0, (8, 2)), "-", (0, (1, 2)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
STYLE: Any = {
    "font.size": 9, "axes.titlesize": 9, "axes.labelsize": 8.5, "xtick.labelsize": 8, "ytick.labelsize": 8,
    "legend.fontsize": 8.5, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.alpha": 0.25, "grid.linewidth": 0.6, "svg.fonttype": "none", "svg.hashsalt": "twotower",
    "axes.unicode_minus": True,
}  # fmt: skip


class Curve(NamedTuple):
    """A line with a band around it."""

    label: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None = None
    high: np.ndarray | None = None


class Panel(NamedTuple):
    """One pair of axes."""

    title: str
    curves: Sequence[Curve]
    references: Mapping[str, float] = {}
    """The paper's values, by the label of the curve they belong to, or by their own."""


def panels(
    items: Sequence[Panel], x_label: str, y_label: str, *, points: bool = False, log: str = "", columns: int = 3
) -> "Callable[[], Figure]":
    """A figure of panels, drawn when called; `points` marks every value, `log` names the logarithmic axes."""

    def draw() -> "Figure":
        import matplotlib
        from matplotlib.figure import Figure

        rows = -(-len(items) // columns)
        wide = min(columns, len(items))
        with matplotlib.rc_context(STYLE):
            figure = Figure(figsize=(max(2.75 * wide, 4.0), 2.25 * rows + 0.55), dpi=160, layout="constrained")
            labels = list(dict.fromkeys(curve.label for item in items for curve in item.curves))
            grid = figure.subplots(rows, wide, squeeze=False)
            for axes, item in zip(grid.flat, items, strict=False):
                _draw(axes, item, labels, points, log)
            for axes in grid.flat[len(items) :]:
                axes.set_visible(False)
            figure.supxlabel(x_label, fontsize=9)
            low = y_label.replace(": ", ":\n").replace(" over ", "\nover ")  # a single row is not as high as it is long
            figure.supylabel(low if rows == 1 else y_label, fontsize=9)
            _legend(figure, labels, points, any(item.references for item in items))
        return figure

    return draw


def save(draw: "Callable[[], Figure]", stem: Path) -> list[str]:
    """Write a figure as PNG and SVG; the names of the files."""
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError as error:
        raise UserError('Figures need matplotlib: install it with pip install "twotower[plot]"') from error
    figure = draw()
    FigureCanvasAgg(figure)
    names = []
    with matplotlib.rc_context(STYLE):
        for kind in ("png", "svg"):
            picture = io.BytesIO()
            figure.savefig(picture, format=kind, metadata={"Date": None} if kind == "svg" else None)
            path = stem.with_suffix(f".{kind}")
            write_atomically(path, picture.getvalue())
            names.append(path.name)
    return names


def _draw(axes: "Axes", item: Panel, labels: Sequence[str], points: bool, log: str) -> None:
    from matplotlib.ticker import MaxNLocator

    for curve in item.curves:
        index = labels.index(curve.label) % len(COLOURS)
        marker = MARKERS[index] if points or len(curve.x) == 1 else None
        style = {"color": COLOURS[index], "linestyle": LINES[index], "marker": marker, "markersize": 4}
        axes.plot(curve.x, curve.y, linewidth=1.3, zorder=3, **style)
        if curve.low is not None and curve.high is not None and np.isfinite(curve.low).any():
            axes.fill_between(curve.x, curve.low, curve.high, color=COLOURS[index], alpha=0.18, linewidth=0)
    for label, value in item.references.items():
        colour = COLOURS[labels.index(label) % len(COLOURS)] if label in labels else "#555555"
        axes.axhline(value, color=colour, linestyle=(0, (2, 2)), linewidth=0.9, alpha=0.9, zorder=2)
    if "x" in log:
        axes.set_xscale("log", base=2)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if "y" in log:
        axes.set_yscale("log")
    axes.set_title(item.title, loc="left", fontweight="bold", parse_math=False)


def _legend(figure: "Figure", labels: Sequence[str], points: bool, references: bool) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[i % len(COLOURS)], linestyle=LINES[i % len(LINES)], linewidth=1.5,
               marker=MARKERS[i % len(MARKERS)] if points else None, markersize=4, label=label)
        for i, label in enumerate(labels)
    ]  # fmt: skip
    if references:
        handles.append(Line2D([], [], color="#555555", linestyle=(0, (2, 2)), linewidth=0.9, label="the paper's value"))
    widest = 0.075 * max(len(str(handle.get_label())) for handle in handles) + 0.6  # inches
    columns = max(1, min(len(handles), int(figure.get_figwidth() / widest)))
    figure.legend(handles=handles, loc="outside upper center", ncols=columns, frameon=False)
