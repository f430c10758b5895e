"""A candidate is the same float whoever draws it: its tile, a redraw alone, or the NumPy reference."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twotower.actions.base import BoxActions
from twotower.actions.box import NO_TABLE, bounds, draw, sobol_points
from twotower.kernels.counter import draw_one, draw_tile
from twotower.kernels.layout import TILE, padded

FINITE = st.floats(-1e9, 1e9, width=32, allow_subnormal=False)  # whose steps round to nothing


@st.composite
def boxes(draw: st.DrawFn) -> BoxActions:
    """Boxes of 1 to 4 dimensions, of any width down to nothing."""
    size = draw(st.integers(1, 4))
    ends = [sorted((draw(FINITE), draw(FINITE))) for _ in range(size)]
    low, high = zip(*ends, strict=True)
    return BoxActions(low, high)


def table_for(kind: str, count: int, size: int) -> np.ndarray:
    return sobol_points(count, size) if kind == "sobol" else NO_TABLE


def tiles_of(actions: BoxActions, count: int, key: int, table: np.ndarray) -> np.ndarray:
    """The kernel's candidates, (count, a)."""
    low, span = bounds(actions)
    columns = np.zeros((low.size, padded(count)), np.float32)
    for start in range(0, count, TILE):
        draw_tile(start, np.uint64(key), table, low, span, columns[:, start : start + TILE])
    return columns[:, :count].T


@pytest.mark.parametrize("kind", ["uniform", "sobol"])
@given(
    actions=boxes(),
    key=st.integers(0, 2**64 - 1),
    count=st.sampled_from([1, TILE - 1, TILE, 2 * TILE + 88]),
    data=st.data(),
)
def test_tile_redraw_and_reference_agree(
    kind: str, actions: BoxActions, key: int, count: int, data: st.DataObject
) -> None:
    low, span = bounds(actions)
    table = table_for(kind, count, low.size)
    tiles = tiles_of(actions, count, key, table)
    assert np.array_equal(tiles, draw(actions, count, key, table))
    index, alone = data.draw(st.integers(0, count - 1)), np.zeros(low.size, np.float32)
    draw_one(index, np.uint64(key), table, low, span, alone)
    assert np.array_equal(alone, tiles[index])
    assert tiles.dtype == np.float32
    assert (tiles >= np.float32(actions.low)).all() and (tiles <= np.float32(actions.high)).all()


def test_tiles_far_along_a_set_go_on_with_its_numbers() -> None:
    actions, key, start = BoxActions((-1.0, 0.0), (1.0, 1.0)), 99, 2**24 - TILE
    low, span = bounds(actions)
    tile = np.zeros((2, TILE), np.float32)
    draw_tile(start, np.uint64(key), NO_TABLE, low, span, tile)
    assert np.array_equal(tile.T, draw(actions, 2**24, key)[start:])


@given(boxes())
def test_low_and_span_lead_nowhere_outside(actions: BoxActions) -> None:
    low, span = bounds(actions)
    assert (low.astype(np.float64) + span <= np.float32(actions.high)).all()
    width = np.float32(actions.high).astype(np.float64) - low
    assert (span >= np.nextafter(width.astype(np.float32), np.float32(0))).all()
