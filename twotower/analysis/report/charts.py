"""Charts as inline SVG: colours come from the page's style, so they follow its light or dark mode."""

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

LEFT, RIGHT, TOP, BOTTOM = 58, 12, 10, 40
DASHES = ("", "7 3", "2 3", "9 3 2 3", "4 4", "1 4")
COLOURS = 6
# Drawn once for wide screens and once for phones, where shrinking the wide one would make its words too small.
SIZES = (("wide", 760, 340), ("narrow", 380, 270))


class Line(NamedTuple):
    """A named line and the band around it."""

    name: str
    x: np.ndarray  # (n,)
    y: np.ndarray
    low: np.ndarray
    high: np.ndarray


def line_chart(lines: Sequence[Line], x_label: str, y_label: str, title: str, description: str) -> str:
    """Lines with bands; every line has a colour and a dash pattern of its own."""
    lines = [line for line in lines if np.isfinite(line.y).any()]
    if not lines:
        return '<p class="note">There is nothing to draw yet.</p>'
    drawn = "".join(
        _framed(lines, size, width, height, x_label, y_label, title, description) for size, width, height in SIZES
    )
    return legend([line.name for line in lines]) + drawn


def legend(names: Sequence[str]) -> str:
    """The names beside a sample of their lines."""
    items = (
        f'<li><svg class="key" viewBox="0 0 28 10" aria-hidden="true"><path class="line c{k % COLOURS}" '
        f'{_dash(k)}d="M1 5H27"/></svg>{escape(name)}</li>'
        for k, name in enumerate(names)
    )
    return f'<ul class="legend">{"".join(items)}</ul>'


def _framed(
    lines: Sequence[Line], size: str, width: int, height: int, x_label: str, y_label: str, title: str, description: str
) -> str:
    across, up = _span([line.x for line in lines]), _span([part for line in lines for part in line[2:]], room=0.04)

    def place(x: np.ndarray, y: np.ndarray) -> list[str]:
        px = LEFT + (x - across[0]) / (across[1] - across[0]) * (width - LEFT - RIGHT)
        py = height - BOTTOM - (y - up[0]) / (up[1] - up[0]) * (height - TOP - BOTTOM)
        return [f"{a:.1f} {b:.1f}" for a, b in zip(px, py, strict=True)]

    parts = [_axes(across, up, width, height, x_label, y_label)]
    for k, line in enumerate(lines):
        known = np.isfinite(line.low) & np.isfinite(line.high)
        if known.any():
            around = place(line.x[known], line.high[known]) + place(line.x[known], line.low[known])[::-1]
            parts.append(f'<path class="band c{k % COLOURS}" d="M{"L".join(around)}Z"/>')
    for k, line in enumerate(lines):
        known = np.isfinite(line.y)
        points = place(line.x[known], line.y[known])
        parts.append(f'<path class="line c{k % COLOURS}" {_dash(k)}d="M{"L".join(points)}"/>')
        if len(points) == 1:  # a line through one point is invisible
            x, y = points[0].split()
            parts.append(f'<circle class="dot c{k % COLOURS}" cx="{x}" cy="{y}" r="4"/>')
    return (
        f'<svg class="chart {size}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{escape(title)}. {escape(description)}">{"".join(parts)}</svg>'
    )


def _axes(
    across: tuple[float, float], up: tuple[float, float], width: int, height: int, x_label: str, y_label: str
) -> str:
    parts = []
    bottom = height - BOTTOM
    for value in ticks(*across, count=max(width // 110, 2)):
        x = LEFT + (value - across[0]) / (across[1] - across[0]) * (width - LEFT - RIGHT)
        parts.append(f'<path class="grid" d="M{x:.1f} {TOP}V{bottom}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 16}" text-anchor="middle">{short(value)}</text>')
    for value in ticks(*up, count=5):
        y = bottom - (value - up[0]) / (up[1] - up[0]) * (bottom - TOP)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{width - RIGHT}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{short(value)}</text>')
    middle = (LEFT + width - RIGHT) / 2
    parts.append(f'<text x="{middle:.0f}" y="{height - 6}" text-anchor="middle">{escape(x_label)}</text>')
    parts.append(
        f'<text transform="translate(13 {(TOP + bottom) / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(y_label)}</text>"
    )
    return "".join(parts)


def share_bars(rows: Sequence[tuple[str, Sequence[float]]], parts: Sequence[str], title: str) -> str:
    """A stacked bar a row, each part's share of the whole, with the figures in words for those who hear it."""
    bars = []
    for name, values in rows:
        whole = sum(values) or 1.0
        shares = [100 * value / whole for value in values]
        words = ", ".join(f"{part} {share:.0f} %" for part, share in zip(parts, shares, strict=True))
        pieces, start = [], 0.0
        for k, (part, share) in enumerate(zip(parts, shares, strict=True)):
            inside = f'<text x="{start + share / 2:.2f}%" y="18" text-anchor="middle">{share:.0f} %</text>'
            pieces.append(
                f'<rect class="fill c{k % COLOURS}" x="{start:.2f}%" width="{share:.2f}%" height="26">'
                f"<title>{escape(part)}: {share:.1f} %</title></rect>{inside if share >= 9 else ''}"
            )
            start += share
        bars.append(
            f'<div class="bar"><span>{escape(name)}</span><svg height="26" role="img" '
            f'aria-label="{escape(f"{title}, {name}: {words}")}">{"".join(pieces)}</svg></div>'
        )
    keys = (f'<li><span class="swatch c{k % COLOURS}"></span>{escape(part)}</li>' for k, part in enumerate(parts))
    return f'<ul class="legend">{"".join(keys)}</ul>{"".join(bars)}'


def ticks(low: float, high: float, count: int) -> list[float]:
    """Round numbers between two limits, about `count` of them."""
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * unit for unit in (1, 2, 2.5, 5, 10) if power * unit >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [n * step for n in range(first, math.floor(high / step + 1e-9) + 1)]


def short(value: float) -> str:
    """A number on an axis."""
    for unit, suffix in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit * 10 or (abs(value) >= unit and suffix != "k"):
            return f"{value / unit:g}{suffix}".replace("-", "−")
    return f"{round(value, 10):g}".replace("-", "−")


def _span(arrays: Sequence[np.ndarray], room: float = 0.0) -> tuple[float, float]:
    """The limits of all that is finite, with some room; never empty."""
    values = np.concatenate(arrays)
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-9):
        low, high = low - max(abs(low) * 0.1, 0.5), high + max(abs(high) * 0.1, 0.5)
    return low - room * (high - low), high + room * (high - low)


def _dash(k: int) -> str:
    dash = DASHES[k % len(DASHES)]
    return f'stroke-dasharray="{dash}" ' if dash else ""
