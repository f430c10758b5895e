"""The picture of a decision."""

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from twotower.actions.base import BoxActions
from twotower.analysis.explain.decision import Decision
from twotower.analysis.figures import BLUE, GREY, ORANGE
from twotower.errors import UserError
from twotower.files.atomic import write_atomically

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = (".png", ".svg", ".pdf")
MOST_POINTS = 6000
GREEN = "#007A5E"


def draw_decision(decision: Decision, path: str | Path) -> None:
    """Draw a decision as a PNG, SVG or PDF."""
    path = Path(path)
    if path.suffix not in FORMATS:
        raise UserError(f"--out must end in {', '.join(FORMATS)}, not {path.name!r}.")
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UserError('Pictures need matplotlib: install it with pip install "twotower[plot]"') from error
    figure = Figure(figsize=(12, 9.2), dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    config = decision.file.config
    figure.suptitle(
        f"{config.task}: what the policy saw at step {decision.step} of episode {decision.episode}",
        x=0.012, ha="left", fontweight="bold", fontsize=15, parse_math=False,
    )  # fmt: skip
    _lay_out(figure, decision)
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix[1:])
    write_atomically(path, picture.getvalue())


def _lay_out(figure: "Figure", decision: Decision) -> None:
    """Up to four panels, and the facts below."""
    flat = decision.latents is None or decision.latents.shape[1] < 2
    rows = figure.add_gridspec(3, 2, height_ratios=(1.25, 0.7, 0.26))
    left = figure.add_subplot(rows[0, :] if flat else rows[0, 0])
    (_draw_bars if decision.is_discrete else _draw_actions)(left, decision)
    if not flat:
        _draw_latents(figure.add_subplot(rows[0, 1]), decision)
    if decision.is_discrete:
        _draw_histogram(figure.add_subplot(rows[1, :]), decision)
    else:
        _draw_histogram(figure.add_subplot(rows[1, 0]), decision)
        _draw_dimensions(figure.add_subplot(rows[1, 1]), decision)
    words = figure.add_subplot(rows[2, :])
    words.axis("off")
    words.text(
        0, 1, "\n".join(decision.said()), va="top", fontsize=10.5, linespacing=1.45, parse_math=False, wrap=True,
    )  # fmt: skip


def _shown(decision: Decision) -> np.ndarray:
    """The candidates to draw: all, or an even share of very many, with the best and the found among them."""
    every = max(len(decision.scores) // MOST_POINTS, 1)
    also = [decision.best] + ([decision.looked.found] if decision.looked else [])
    return np.union1d(np.arange(0, len(decision.scores), every), also)


def _scatter(axes: "Axes", decision: Decision, points: np.ndarray, with_scale: bool) -> None:
    """Candidates at points (N, 2) coloured by their scores, those the search passed over in grey; then the marks."""
    shown = _shown(decision)
    look = decision.looked
    seen = look.visited if look is not None and look.visited is not None else np.ones(len(points), bool)
    passed, scored = shown[~seen[shown]], shown[seen[shown]]
    size = float(np.clip(9000 / len(shown), 6, 60))
    if len(passed):
        axes.scatter(*points[passed].T, s=size * 0.6, color="#D4D8DD", lw=0, label="passed over by the search")
    scored = scored[np.argsort(decision.scores[scored])]
    drawn = axes.scatter(
        *points[scored].T, s=size, c=decision.scores[scored], cmap="viridis", lw=0,
        vmin=float(decision.scores.min()), vmax=float(decision.scores.max()), label="scored candidates",
    )  # fmt: skip
    if with_scale:
        axes.figure.colorbar(drawn, ax=axes, label="score  K(state, action)", pad=0.015, fraction=0.05)
    best = points[decision.best]
    axes.scatter(*best, s=170, facecolors="none", edgecolors=ORANGE, lw=2.4, label="best candidate", zorder=5)
    if look is not None and look.found != decision.best:
        axes.scatter(*points[look.found], s=130, marker="s", facecolors="none", edgecolors=BLUE, lw=2.2,
                     label=f"found by {look.name}", zorder=5)  # fmt: skip


def _draw_actions(axes: "Axes", decision: Decision) -> None:
    """Candidates in the box: as they are, or their first two principal components."""
    size = decision.candidates.shape[1]
    corner = None if decision.corner is None else decision.corner[None]
    if size == 1:
        points = np.column_stack([decision.candidates[:, 0], decision.scores])
        corner = None if corner is None else np.array([[corner[0, 0], decision.corner_score]])
        axes.set_xlabel("action")
        axes.set_ylabel("score")
        title = "Every candidate action and its score"
    elif size == 2:
        points = decision.candidates
        axes.set_xlabel("action, dimension 1")
        axes.set_ylabel("action, dimension 2")
        title = "Candidate actions in their box"
    else:
        points, corner = _along_scores(decision.candidates, decision.scores, corner)
        axes.set_xlabel("along which scores change most")
        axes.set_ylabel("principal component of the rest")
        title = f"Candidate actions, {size} dimensions seen from the side"
    alone = decision.latents is None or decision.latents.shape[1] < 2
    _scatter(axes, decision, points, with_scale=alone)
    if corner is not None:
        axes.scatter(*corner.T, s=190, marker="*", color=ORANGE, ec="white", lw=0.8, label="best corner", zorder=6)
    _finish(axes, title, legend=True)


def _along_scores(
    points: np.ndarray, scores: np.ndarray, others: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Two coordinates: the direction in which scores rise, fitted to them, and the widest one across it."""
    centre = points.mean(axis=0, dtype=np.float64)
    slope, *_ = np.linalg.lstsq(points - centre, scores - scores.mean(), rcond=None)
    return _seen_along(points, centre, slope, others)


def _seen_along(
    points: np.ndarray, centre: np.ndarray, direction: np.ndarray, others: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Points by their component along a direction and the first principal component of what is left."""
    length = np.linalg.norm(direction)
    unit = direction / length if length > 0 else np.eye(len(direction))[0]
    across = points - centre - np.outer((points - centre) @ unit, unit)
    _, _, axes = np.linalg.svd(across[:: max(len(across) // MOST_POINTS, 1)], full_matrices=False)
    frame = np.column_stack([unit, axes[0]])
    return (points - centre) @ frame, None if others is None else (others - centre) @ frame


def _draw_latents(axes: "Axes", decision: Decision) -> None:
    """The latent space turned so that the state's latent points to the right: the best candidate reaches farthest."""
    assert decision.latents is not None and decision.latent is not None
    origin = np.zeros(decision.latents.shape[1])
    points, _ = _seen_along(decision.latents.astype(np.float64), origin, decision.latent.astype(np.float64))
    _scatter(axes, decision, points, with_scale=True)
    best = points[decision.best]
    reach = float(np.abs(points[:, 0]).max()) or 1.0
    arrow = {"arrowstyle": "-|>", "color": "black", "lw": 1.8}
    axes.annotate("", xy=(reach * 1.12, 0), xytext=(0, 0), arrowprops=arrow)
    axes.annotate("state's latent", (reach * 0.06, 0), (0, -14), textcoords="offset points", fontsize=9.5)
    axes.axvline(float(best[0]), color=ORANGE, lw=1, ls=(0, (4, 3)))
    axes.set_xlim(right=reach * 1.16)
    if decision.is_discrete:
        for number, point in enumerate(points[:30]):
            axes.annotate(str(number), point, (7, 5), textcoords="offset points", fontsize=10)
    axes.set_xlabel("along the state's latent: score / its length")
    axes.set_ylabel("widest direction across it")
    _finish(axes, "Latent space: the winner reaches farthest to the right")


def _draw_bars(axes: "Axes", decision: Decision) -> None:
    """A discrete space: every action's score."""
    best = decision.scores.max()
    tied = ["#E6B08A" if score == best else GREY for score in decision.scores]
    colours = [ORANGE if k == decision.best else colour for k, colour in enumerate(tied)]
    axes.bar(np.arange(len(decision.scores)), decision.scores, color=colours, width=0.7)
    axes.axhline(0, color="black", lw=0.8)
    if len(decision.scores) <= 30:
        axes.set_xticks(np.arange(len(decision.scores)))
    axes.set_xlabel("action")
    axes.set_ylabel("score  K(state, action)")
    _finish(axes, "Every action's score" + (" (a tie: the first wins)" if decision.ties > 1 else ""))


def _draw_histogram(axes: "Axes", decision: Decision) -> None:
    """How the scores are spread, and where the marks lie among them."""
    look, scores = decision.looked, decision.scores
    span = (float(scores.min()), float(max(scores.max(), decision.corner_score or -np.inf)))
    bins = np.linspace(span[0], span[1] if span[1] > span[0] else span[0] + 1, 60)
    axes.hist(scores, bins, color="#C9CED4", label="all candidates")  # pyright: ignore[reportArgumentType]
    if look is not None and look.visited is not None and not look.visited.all():
        axes.hist(scores[look.visited], bins, color=GREEN, label="scored by the search")  # pyright: ignore[reportArgumentType]
    marks = [("mean", float(scores.mean()), "black"), ("best", float(scores.max()), ORANGE)]
    if look is not None and look.found != decision.best:
        marks.append((f"found by {look.name}", float(scores[look.found]), BLUE))
    if decision.corner_score is not None:
        marks.append(("best corner", decision.corner_score, "#7A3E00"))
    for k, (name, value, colour) in enumerate(marks):
        axes.axvline(value, color=colour, lw=1.8, ls=("-", "-", "--", ":")[k], label=f"{name}  {value:.3g}")
    axes.set_ylabel("candidates")
    _finish(axes, "How the scores are spread", legend=True)


def _draw_dimensions(axes: "Axes", decision: Decision) -> None:
    """Each dimension of the action within its limits."""
    actions = decision.file.spec.actions
    assert isinstance(actions, BoxActions)
    low, high = np.array(actions.low), np.array(actions.high)
    size = len(low)
    rows = np.arange(size)
    axes.hlines(rows, -1, 1, color="#C9CED4", lw=6)

    def scaled(action: np.ndarray) -> np.ndarray:
        return 2 * (action - low) / (high - low) - 1

    if decision.corner is not None:
        axes.scatter(scaled(decision.corner), rows, s=150, marker="*", color="#7A3E00", label="best corner", zorder=3)
    axes.scatter(scaled(decision.candidates[decision.best]), rows, s=85, facecolors="none", edgecolors=ORANGE, lw=2.4,
                 label="best candidate", zorder=4)  # fmt: skip
    axes.scatter(scaled(decision.taken), rows, s=26, color="black", label="action taken", zorder=5)
    saturation = float(np.abs(scaled(decision.taken)).mean())
    axes.set_xticks([-1, 0, 1], ["lowest", "middle", "highest"])
    axes.set_yticks(rows, [f"dim {row + 1}" for row in rows])
    axes.set_ylim(size - 0.4, -0.6)
    axes.set_xlim(-1.08, 1.08)
    _finish(axes, f"The action in its box: saturation {100 * saturation:.0f} %", legend=True)


def _finish(axes: "Axes", title: str, legend: bool = False) -> None:
    axes.set_title(title, loc="left", fontsize=11.5)
    axes.grid(alpha=0.2, lw=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if legend:  # below, where it hides nothing
        axes.legend(fontsize=9, loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=5, frameon=False,
                    columnspacing=1.2, handletextpad=0.5)  # fmt: skip
