"""Branch and bound chooses what brute force chooses, whatever the towers, scales and ties."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from twotower.actions.base import ActionSpace, BoxActions, DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.errors import UserError
from twotower.kernels import implicit
from twotower.kernels.layout import TILE
from twotower.policies import make_policy
from twotower.policies.actor import BoundedActor, KeptActor, make_actor
from twotower.policies.base import ImplicitPolicy
from twotower.policies.searches import can_bound, pays
from twotower.randomness import derive, generator

STATE, SLOTS = 4, 3


def implicit_policy(space: ActionSpace, count: int, refresh: str = "iteration", **network: object) -> ImplicitPolicy:
    config = PolicyConfig(**network)  # pyright: ignore[reportArgumentType]
    policy = make_policy(config, CandidatesConfig(count, refresh=refresh), STATE, space)  # pyright: ignore[reportArgumentType]
    assert isinstance(policy, ImplicitPolicy)
    return policy


def both(space: BoxActions, count: int, **network: object) -> tuple[KeptActor, BoundedActor]:
    """Brute force and branch and bound for one policy."""
    brute = make_actor(implicit_policy(space, count, search="brute_force", **network), SLOTS)
    bounded = make_actor(implicit_policy(space, count, search="bounded", **network), SLOTS)
    assert isinstance(brute, KeptActor) and isinstance(bounded, BoundedActor)
    return brute, bounded


def given_set(actions: np.ndarray) -> object:
    """A stand-in for the draw of candidates that puts `actions` (N, a) into the tiles."""

    def fill(key: int, table: np.ndarray, low: np.ndarray, span: np.ndarray, count: int, tiles: np.ndarray) -> None:
        numbers = np.arange(count)
        tiles[numbers // TILE, :, numbers % TILE] = actions

    return fill


def agree(
    brute: KeptActor, bounded: BoundedActor, thetas: np.ndarray, observations: np.ndarray, shared: bool = False
) -> np.ndarray:
    """Assert the same choices for observations (steps, SLOTS, s) and return the indices (steps, SLOTS)."""
    slots, chosen = np.arange(SLOTS, dtype=np.int32), []
    for actor in (brute, bounded):
        actor.begin(77, thetas[0] if shared else None)
        for slot in slots:
            actor.start(slot, thetas[0 if shared else slot], derive(5, slot))
    for batch in observations:
        expected = brute.act(slots, batch).copy()
        np.testing.assert_array_equal(bounded.act(slots, batch), expected)
        np.testing.assert_array_equal(bounded._chosen, brute._chosen)
        chosen.append(brute._chosen.copy())
    return np.array(chosen)


@settings(max_examples=250)
@given(
    size=st.integers(1, 7),
    hidden=st.sampled_from([None, 1, 2, 5, 9]),
    latent=st.integers(1, 6),
    count=st.integers(1, 3000),
    scales=st.tuples(*[st.integers(-30, 30)] * 3),
    grid=st.sampled_from([None, 1, 4]),
    coarse_towers=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_the_choice_is_brute_forces(
    size: int,
    hidden: int | None,
    latent: int,
    count: int,
    scales: tuple[int, int, int],
    grid: int | None,
    coarse_towers: bool,
    seed: int,
) -> None:
    in_actions, in_towers, in_states = scales
    latents = in_towers * (3 if hidden else 2) + in_states
    assume(max(latents, latents + in_actions, in_towers + in_actions) < 35)  # inf - inf has no order
    random = generator(seed)
    of_actions, of_towers, of_states = (10.0**exponent for exponent in scales)
    actions = random.uniform(-1, 1, (count, size))
    if grid is not None:  # equal candidates, whose first index must win
        actions = np.round(actions * grid) / grid
    network = {} if hidden is None else {"action_hidden": (hidden,)}
    brute, bounded = both(BoxActions((-1.0,) * size, (1.0,) * size), count, latent=latent, **network)
    thetas = random.normal(size=(SLOTS, brute.policy.num_params))
    if coarse_towers:  # units that are dead or equal, and scores that tie
        thetas = np.round(thetas)
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore", invalid="ignore"):
        patch.setattr(implicit, "draw_set", given_set((actions * of_actions).astype(np.float32)))
        observations = random.normal(size=(4, SLOTS, STATE)) * of_states
        agree(brute, bounded, (thetas * of_towers).astype(np.float32), observations)


@pytest.mark.parametrize("hidden", [(), (6,)])
@pytest.mark.parametrize("shared", [False, True])
def test_it_agrees_on_drawn_sets_iteration_after_iteration(hidden: tuple[int, ...], shared: bool) -> None:
    space = BoxActions((-2.0, 0.0, 1e-3), (3.0, 1.0, 40.0))
    brute, bounded = both(space, 5 * TILE + 44, latent=3, action_hidden=hidden, state_hidden=(5,))
    random = generator(3)
    for _ in range(3):
        thetas = random.normal(size=(SLOTS, brute.policy.num_params))
        walk = np.cumsum(random.normal(size=(40, SLOTS, STATE)) * 0.3, axis=0)  # like a rollout's states
        chosen = agree(brute, bounded, thetas, walk, shared)
        assert len(np.unique(chosen)) > 3


def test_dead_towers_choose_the_first_candidate() -> None:
    brute, bounded = both(BoxActions((0.5, 0.5), (1.0, 1.0)), 3000, latent=2, action_hidden=(2,))
    thetas = np.full((SLOTS, brute.policy.num_params), -1.0)
    assert not agree(brute, bounded, thetas, np.ones((3, SLOTS, STATE))).any()


def test_without_a_number_to_compare_the_first_candidate_is_chosen() -> None:
    brute, bounded = both(BoxActions((-1.0,) * 3, (1.0,) * 3), 2500, latent=3, action_hidden=(4,))
    thetas = generator(4).normal(size=(SLOTS, brute.policy.num_params))
    observations = generator(5).normal(size=(4, SLOTS, STATE))
    observations[1, :, 0], observations[2] = np.nan, np.nan
    chosen = agree(brute, bounded, thetas, observations)
    assert not chosen[1:3].any() and chosen[0].any() and chosen[3].any()


BOX = BoxActions((-1.0,) * 2, (1.0,) * 2)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "iot", "hidden": (3,)},
        {"choice": "sample"},
        {"refresh": "step"},
        {"refresh": "rollout"},
        {"action_hidden": (3, 3)},
        {"action_hidden": (3,), "activation": "tanh"},
        {"space": DiscreteActions(3)},
    ],
    ids=str,
)
def test_where_it_does_not_apply_asking_for_it_is_refused_and_auto_goes_on_without(change: dict) -> None:
    arguments = {"space": BOX, "count": 5000, "latent": 2, **change}
    with pytest.raises(UserError, match="--policy.search bounded is branch and bound for ITT.*--policy.search auto"):
        implicit_policy(search="bounded", **arguments)
    policy = implicit_policy(**arguments)
    assert not can_bound(policy) and not isinstance(make_actor(policy, 1), BoundedActor)


@pytest.mark.parametrize(("count", "size", "worth_it"), [(10_000, 5, True), (1000, 2, False), (10_000, 21, False)])
def test_auto_takes_it_where_the_tree_can_split_every_dimension(count: int, size: int, worth_it: bool) -> None:
    policy = implicit_policy(BoxActions((-1.0,) * size, (1.0,) * size), count, latent=3)
    assert can_bound(policy) and pays(policy) is worth_it
    assert isinstance(make_actor(policy, 1), BoundedActor) is worth_it
