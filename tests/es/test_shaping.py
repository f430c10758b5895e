"""Ranks, selection and scale: pure functions of the returns."""

import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from twotower.config import StrategyConfig
from twotower.es import STRATEGIES, Antithetic, Strategy
from twotower.es.shaping import best_directions, centred_ranks, shape_returns

RETURNS = st.lists(st.integers(-5, 5).map(float) | st.floats(-1e9, 1e9), min_size=2, max_size=30)
PAIRS = np.repeat(np.arange(4), 2)


@given(RETURNS)
def test_ranks_are_spread_evenly_and_ties_share_theirs(returns: list[float]) -> None:
    ranks = centred_ranks(np.array(returns))
    np.testing.assert_allclose(ranks, (scipy.stats.rankdata(returns) - 1) / (len(returns) - 1) - 0.5)
    assert abs(ranks.sum()) < 1e-9 and np.abs(ranks).max() <= 0.5


def test_the_best_members_choose_the_directions() -> None:
    returns = np.array([1.0, 9.0, 5.0, 5.0, 0.0, 7.0, 7.0, -3.0])
    assert best_directions(returns, PAIRS, 2).tolist() == [True, False, True, False]  # 9, then the first 7
    assert best_directions(returns, PAIRS, 3).tolist() == [True, False, True, True]
    assert best_directions(returns, PAIRS, None).all() and best_directions(returns, PAIRS, 7).all()
    with_centre = np.array([-1, 0, 1, 2])
    assert best_directions(np.array([100.0, 1.0, 3.0, 2.0]), with_centre, 1).tolist() == [False, True, False]


def test_returns_are_divided_by_the_deviation_of_those_that_count() -> None:
    config = StrategyConfig(scale_returns=True, top_directions=2)
    returns = np.array([1.0, 9.0, 5.0, 5.0, 0.0, 7.0, 7.0, -3.0])
    shaped = shape_returns(config, returns, PAIRS)
    np.testing.assert_allclose(shaped.values, returns / np.std([1.0, 9.0, 0.0, 7.0]))
    centred = shape_returns(config, returns[:4], np.array([-1, 0, 1, 2]))
    np.testing.assert_allclose(centred.values, returns[:4] / np.std([1.0, 9.0, 5.0]))


def gradient(strategy: Strategy, returns: np.ndarray) -> np.ndarray:
    return strategy.gradient(strategy.propose(strategy.init(strategy.theta)), returns)


@pytest.mark.parametrize("name", sorted(STRATEGIES))
def test_shaped_gradients_do_not_depend_on_the_scale_of_rewards(name: str) -> None:
    for choices in ({"shaping": "ranks"}, {"scale_returns": True}):
        strategy = STRATEGIES[name](6, StrategyConfig(**choices), num_directions=5)
        returns = np.random.default_rng(0).normal(size=len(strategy.ask()))
        np.testing.assert_allclose(gradient(strategy, 40 * returns - 7), gradient(strategy, returns), atol=1e-12)
        assert np.abs(gradient(strategy, returns)).max() > 0.01
        assert not gradient(strategy, np.full(len(returns), 3.0)).any()
    cubed = STRATEGIES[name](6, num_directions=5, shaping="ranks")
    np.testing.assert_array_equal(gradient(cubed, returns**3), gradient(cubed, returns))


def test_directions_left_out_do_not_move_theta() -> None:
    strategy = Antithetic(8, num_directions=4, top_directions=1)
    rows = strategy.propose(strategy.init(strategy.theta)).directions.rows(0, 4)
    found = gradient(strategy, np.array([0.0, 1.0, 3.0, -5.0, 1.0, 2.0, 2.5, 2.5]))
    np.testing.assert_allclose(found, (3.0 + 5.0) / (2 * 1.0 * 1) * rows[1])
    all_of_them = Antithetic(8, num_directions=4, top_directions=4)
    returns = np.arange(8.0) ** 2
    np.testing.assert_array_equal(gradient(all_of_them, returns), gradient(Antithetic(8, num_directions=4), returns))
