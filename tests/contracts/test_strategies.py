"""What holds for every estimator with every kind of directions."""

import pickle
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from twotower.config import StrategyConfig
from twotower.es import DIRECTIONS, STRATEGIES, Proposal, Strategy, StrategyState


@st.composite
def built(draw: st.DrawFn) -> Strategy:
    """Any strategy over 1 to 12 parameters."""
    num_params = draw(st.integers(1, 12))
    directions: Any = draw(st.sampled_from(sorted(DIRECTIONS)))
    num_directions = draw(st.none() | st.integers(1, 30))
    shaping: Any = draw(st.sampled_from(["none", "ranks"]))
    config = StrategyConfig(
        directions=directions,
        num_directions=num_directions,
        lazy=draw(st.integers(1, 3)),
        shaping=shaping,
        scale_returns=draw(st.booleans()),
        top_directions=draw(st.none() | st.integers(1, 30)),
    )
    estimator = STRATEGIES[draw(st.sampled_from(sorted(STRATEGIES)))]
    state_params = draw(st.integers(1, num_params))
    return estimator(num_params, config, state_params=state_params, seed=draw(st.integers(0, 2**63 - 1)))


def members(proposal: Proposal) -> np.ndarray:
    return np.stack([proposal.member(index) for index in range(len(proposal.sign))])


@settings(max_examples=80, deadline=None, derandomize=True)
@given(built(), st.integers(0, 5))
def test_contract(strategy: Strategy, iteration: int) -> None:
    state = StrategyState(np.linspace(-1, 1, strategy.num_params), iteration)
    proposal = strategy.propose(state)
    lazy = iteration % strategy.config.lazy != 0
    active, count = proposal.active, proposal.directions.count

    # Shapes.
    assert active == (strategy.state_params if lazy else strategy.num_params)
    assert proposal.directions.dims == active
    assert proposal.direction_of.dtype == np.int64 and proposal.sign.dtype == np.float64
    assert proposal.direction_of.shape == proposal.sign.shape
    assert set(proposal.direction_of) - {-1} == set(range(count))
    rows = proposal.directions.rows(0, count)
    assert rows.shape == (count, active) and rows.dtype == np.float64 and np.isfinite(rows).all()
    population = members(proposal)
    assert population.shape == (len(proposal.sign), strategy.num_params)

    # Any row alone has the bits it has among all; so has a copy in another process.
    shipped: Proposal = pickle.loads(pickle.dumps(proposal))
    for row in {0, count // 2, count - 1}:
        assert np.array_equal(shipped.directions.rows(row, row + 1)[0], rows[row])
    assert np.array_equal(members(shipped), population)

    # Proposing and updating are pure.
    assert np.array_equal(members(strategy.propose(state)), population)
    before = state.theta.copy()
    returns = np.cos(population).sum(axis=1)
    after, diagnostics = strategy.update(state, proposal, returns)
    again, _ = strategy.update(state, shipped, returns)
    assert np.array_equal(after.theta, again.theta) and np.array_equal(state.theta, before)
    assert after.iteration == iteration + 1
    assert np.array_equal(after.theta[active:], state.theta[active:])

    # The step is η times the gradient; equal returns give none.
    np.testing.assert_allclose(
        after.theta[:active] - before[:active], 0.01 * strategy.gradient(proposal, returns), atol=1e-12
    )
    np.testing.assert_allclose(diagnostics.step_norm, 0.01 * diagnostics.gradient_norm, rtol=1e-12)
    assert not strategy.gradient(proposal, np.full(len(returns), 3.0)).any()


@settings(max_examples=40, deadline=None, derandomize=True)
@given(built())
def test_iterations_and_seeds_have_directions_of_their_own(strategy: Strategy) -> None:
    # Signs alone repeat by chance in small spaces, so look at several iterations of a larger one.
    larger = type(strategy)(40, strategy.config, seed=strategy.seed)
    other = type(strategy)(40, strategy.config, seed=strategy.seed ^ 1)
    state = StrategyState(np.zeros(40), 0)
    first = larger.propose(state).directions.rows(0, 1)
    assert not np.array_equal(larger.propose(state._replace(iteration=1)).directions.rows(0, 1), first)
    assert not np.array_equal(other.propose(state).directions.rows(0, 1), first)
