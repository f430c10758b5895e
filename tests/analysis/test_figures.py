"""The learning curve shows what the metrics say, whatever is missing from them."""

import sys
from pathlib import Path
from typing import Any

import matplotlib.axes
import matplotlib.figure
import matplotlib.image
import numpy as np
import pytest

from twotower.analysis.figures import draw_curve
from twotower.errors import UserError


def rows(count: int) -> list[dict[str, Any]]:
    return [
        {"iteration": k, "return": 10.0 * k, "best": 10.0 * k, "steps": 1000 * (k + 1) ** 2}
        | {"population_mean": 5.0 * k, "population_p10": 2.0 * k, "population_p90": 8.0 * k}
        for k in range(count)
    ]


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[matplotlib.figure.Figure]:
    """The figures that were saved."""
    figures: list[matplotlib.figure.Figure] = []
    save = matplotlib.figure.Figure.savefig

    def keep(figure: matplotlib.figure.Figure, *args: Any, **kwargs: Any) -> None:
        figures.append(figure)
        save(figure, *args, **kwargs)

    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", keep)
    return figures


def lines(axes: matplotlib.axes.Axes) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.get_lines()}


def test_the_curve_shows_the_metrics(tmp_path: Path, drawn: list[matplotlib.figure.Figure]) -> None:
    draw_curve(rows(11), tmp_path / "curve.png", "a $^$ title_")
    assert matplotlib.image.imread(tmp_path / "curve.png").std() > 0.05
    axes, top = drawn[0].axes
    assert axes.get_title(loc="left") == "a $^$ title_"
    shown = lines(axes)
    np.testing.assert_array_equal(shown["θₖ, one episode"], 10.0 * np.arange(11))
    np.testing.assert_array_equal(shown["best so far"], 10.0 * np.arange(11))
    np.testing.assert_array_equal(shown["population mean"], 5.0 * np.arange(11))
    assert len(axes.collections) == 1  # the band
    labels = {
        label.get_text(): position for position, label in zip(top.get_xticks(), top.get_xticklabels(), strict=True)
    }
    assert labels["100k"] == pytest.approx(9)  # 1000 (k + 1)² steps after iteration k
    assert top.get_xlim() == axes.get_xlim()


def test_gaps_and_missing_columns_are_left_out(tmp_path: Path, drawn: list[matplotlib.figure.Figure]) -> None:
    metrics = [{"iteration": k, "return": None if k == 1 else 1.0} for k in range(3)]
    draw_curve(metrics, tmp_path / "curve.png", "gaps")
    (axes,) = drawn[0].axes
    assert lines(axes).keys() == {"θₖ, one episode"}
    np.testing.assert_array_equal(lines(axes)["θₖ, one episode"], [1.0, np.nan, 1.0])
    assert len(axes.collections) == 0


def test_one_iteration_is_a_visible_point(tmp_path: Path, drawn: list[matplotlib.figure.Figure]) -> None:
    draw_curve(rows(1), tmp_path / "curve.png", "one")
    assert [line.get_marker() for line in drawn[0].axes[0].get_lines()] == ["o"] * 3


def test_nothing_to_draw_and_nowhere_to_draw(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="before the first iteration"):
        draw_curve([], tmp_path / "curve.png", "empty")
    with pytest.raises(UserError, match="No such file"):
        draw_curve(rows(2), tmp_path / "missing" / "curve.png", "nowhere")


def test_without_matplotlib_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UserError, match=r'pip install "twotower\[plot\]"'):
        draw_curve(rows(2), tmp_path / "curve.png", "none")
