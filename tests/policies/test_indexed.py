"""Acting through an index: exact ones choose what brute force chooses, to the bit, whatever keeps the candidates."""

import dataclasses
import itertools
from typing import Any

import numpy as np
import pytest

from twotower.actions.base import ActionSpace, BoxActions, DiscreteActions
from twotower.config import CandidatesConfig, PolicyConfig, SearchConfig
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.policies.acting import Actor
from twotower.policies.actor import make_actor
from twotower.policies.indexed import IndexedActor
from twotower.policies.searches import INDEXES, SETTINGS, tree_pays
from twotower.randomness import derive, generator

STATE, SLOTS, STEPS = 5, 4, 12
SPACES: dict[str, ActionSpace] = {
    "box": BoxActions((-1.0,) * 3, (1.0,) * 3),
    "odd box": BoxActions((-2.0, 0.0, 1e-3, -1.0, 3.0), (3.0, 1.0, 40.0, 1.0, 4.0)),
    "discrete": DiscreteActions(700),
}
TOWERS: dict[str, dict[str, Any]] = {
    "one matrix": {},
    "two": {"latent": 3, "action_hidden": (3,)},
    "deep": {"latent": 4, "state_hidden": (6,), "action_hidden": (5, 3), "activation": "tanh"},
}


def actor_for(
    search: str, space: ActionSpace, refresh: Any = "rollout", count: int = 900, options: Any = None, **choices: Any
) -> Actor:
    policy = make_policy(
        PolicyConfig(search=search, **choices),
        CandidatesConfig(count, refresh=refresh),
        STATE,
        space,
        SearchConfig(**(options or {})),
    )
    return make_actor(policy, SLOTS)


def played(actor: Actor, shared: bool = False, iterations: int = 2) -> np.ndarray:
    """Actions of all slots over some rollouts; slot 2 starts over in between."""
    seen = []
    thetas = generator(1).normal(size=(SLOTS, actor.policy.num_params))
    if shared:
        thetas[:, actor.policy.state_params :] = thetas[0, actor.policy.state_params :]
    for iteration in range(iterations):
        actor.begin(derive(8, iteration), thetas[0] if shared else None)
        for slot in range(SLOTS):
            actor.start(slot, thetas[slot], derive(2, iteration, slot))
        for step in range(STEPS):
            if step == 5:
                actor.start(2, thetas[3], derive(2, iteration, 9))
            slots = np.arange(step % 2, SLOTS, dtype=np.int32)
            seen.append(actor.act(slots, generator(3, step).normal(size=(slots.size, STATE))).copy())
    return np.concatenate(seen)


@pytest.mark.parametrize(
    ("space", "towers", "refresh", "shared"),
    [
        (space, towers, refresh, shared)
        for space, towers, (refresh, shared) in itertools.product(
            SPACES, TOWERS, [("rollout", False), ("rollout", True), ("iteration", False), ("fixed", True)]
        )
    ],
)
def test_the_tree_chooses_what_brute_force_chooses(space: str, towers: str, refresh: str, shared: bool) -> None:
    brute, tree = (
        actor_for(search, SPACES[space], refresh, **TOWERS[towers]) for search in ("brute_force", "box_tree")
    )
    assert isinstance(tree, IndexedActor)
    expected = played(brute, shared)
    assert np.array_equal(played(tree, shared), expected)
    assert len(np.unique(expected.reshape(len(expected), -1), axis=0)) > 3


@pytest.mark.parametrize("refresh", ["rollout", "iteration", "fixed"])
@pytest.mark.parametrize("search", INDEXES)
def test_every_index_chooses_well(search: str, refresh: str) -> None:
    audited = {"audit": 1.0}
    actor = actor_for(search, SPACES["box"], refresh, options=audited, latent=3, action_hidden=(3,))
    actions = played(actor, shared=refresh == "fixed")
    assert (np.abs(actions) <= 1).all()
    audits = actor.audits
    assert (audits[:, 0] >= 5).all()
    regret, recall = audits[:, 1].sum() / audits[:, 0].sum(), audits[:, 3].sum() / audits[:, 0].sum()
    exact = search in ("brute_force", "box_tree", "hull", "lazy_gumbel")
    assert (regret, recall) == (0, 1) if exact else 0 <= regret < (0.5 if search == "srp_paper" else 0.1)
    assert (audits[:, 4] >= audits[:, 0]).all() and (audits[:, 2] <= 1.5).all()


@pytest.mark.parametrize("search", ["brute_force", "bounded", "box_tree", "srp"])
def test_audits_change_nothing_and_are_of_the_share_asked_for(search: str) -> None:
    network, options = {"latent": 3, "action_hidden": (3,)}, {"audit": 0.3}
    refresh = "iteration" if search == "bounded" else "rollout"
    plain = played(actor_for(search, SPACES["box"], refresh, **network), iterations=9)
    actor = actor_for(search, SPACES["box"], refresh, options=options, **network)
    assert np.array_equal(played(actor, iterations=9), plain)
    audited = actor.audits[:, 0].sum() / (SLOTS * STEPS)  # of the last rollouts
    assert 0.05 < audited < 0.7
    again = actor_for(search, SPACES["box"], refresh, options=options, **network)
    played(again, iterations=9)
    assert np.array_equal(again.audits, actor.audits)


def test_a_shared_index_is_built_once_while_it_lasts() -> None:
    actor = actor_for("box_tree", SPACES["box"], "fixed", latent=3, action_hidden=(3,))
    assert isinstance(actor, IndexedActor)
    built = []
    actor._index.tables_of = lambda *given: built.append(given) or type(actor._index).tables_of(actor._index, *given)  # pyright: ignore
    theta = generator(1).normal(size=actor.policy.num_params)
    for shared in (theta, theta + np.r_[np.ones(actor.policy.state_params), np.zeros(18)]):
        actor.begin(7, shared)
        for slot in range(SLOTS):
            actor.start(slot, theta, slot)
    assert len(built) == 1
    actor.begin(7, theta + 1)
    actor.begin(8, theta + 1)
    assert len(built) == 3
    actor.begin(8, None)
    actor.start(0, theta, 0)
    assert len(built) == 4


def test_members_at_work_alone_have_an_index() -> None:
    actor = actor_for("box_tree", SPACES["box"], latent=3, action_hidden=(3,))
    played(actor, iterations=5)
    assert isinstance(actor, IndexedActor) and {len(table) for table in actor._tables} == {SLOTS}


def test_subsets_of_different_sizes_share_a_table() -> None:
    """Hulls of a few vertices and of all candidates, beside each other."""
    actor = actor_for("hull", SPACES["box"], count=4000, options={"audit": 1.0}, latent=2, action_hidden=(2,))
    thetas = generator(1).normal(size=(SLOTS, actor.policy.num_params))
    thetas[2, actor.policy.state_params :] = 0  # whose latents are all the same: no hull
    for slot in range(SLOTS):
        actor.start(slot, thetas[slot], slot)
    for step in range(20):
        actor.act(np.arange(SLOTS, dtype=np.int32), generator(3, step).normal(size=(SLOTS, STATE)))
    assert (actor.audits[:, 0] == 20).all() and actor.audits[:, 2].max() < 1e-5
    visited = actor.audits[:, 4] / actor.audits[:, 0]
    assert visited[2] == 4000 and max(visited[0], visited[1], visited[3]) < 512


@pytest.mark.parametrize(("search", "options"), [("rft", {"leaf": 8}), ("lazy_gumbel", {})])
def test_samples_follow_the_softmax(search: str, options: dict[str, Any]) -> None:
    actor = actor_for(search, DiscreteActions(5), "rollout", latent=2, choice="sample", options=options)
    policy = actor.policy
    theta = generator(4).normal(size=policy.num_params) * 0.4
    observation = generator(5).normal(size=STATE)
    actor.begin(0, theta)
    actor.start(0, theta, 11)
    taken = [int(actor.act(np.zeros(1, np.int32), observation[None])[0]) for _ in range(4000)]
    scores = policy.scores(theta, observation, policy.encoded_set(0))  # pyright: ignore
    expected = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()  # one leaf, so it is exact
    assert np.abs(np.bincount(taken, minlength=5) / 4000 - expected).max() < 0.03
    assert expected.max() < 0.9


@pytest.mark.parametrize("scale", [1e-30, 1e-12, 1e12])
def test_extreme_towers_choose_alike(scale: float) -> None:
    for search in ("brute_force", "box_tree"):
        actor = actor_for(search, SPACES["box"], latent=3, action_hidden=(3,))
        actor.begin(0, None)
        theta = generator(2).normal(size=actor.policy.num_params)
        theta[: actor.policy.state_params] *= scale
        actor.start(0, theta, 5)
        chosen = actor.act(np.zeros(1, np.int32), np.ones((1, STATE))).copy()
        first = chosen if search == "brute_force" else first  # noqa: F821
        assert np.array_equal(chosen, first)


def test_towers_out_of_range_are_refused_in_words() -> None:
    actor = actor_for("box_tree", SPACES["box"], latent=3, action_hidden=(5, 3))
    with pytest.raises(UserError, match="outputs are no longer finite"):
        actor.start(0, np.full(actor.policy.num_params, 1e30), 5)


def test_auto_takes_a_tree_where_it_pays() -> None:
    network: dict[str, Any] = {"latent": 6, "action_hidden": (6,)}
    for count, refresh, indexed in ((1000, "rollout", False), (16384, "rollout", True), (16384, "step", False)):
        actor = actor_for("auto", SPACES["box"], refresh, count, **network)
        assert isinstance(actor, IndexedActor) == indexed == tree_pays(actor.policy)  # pyright: ignore


def test_every_option_of_an_index_can_be_given() -> None:
    """A new option of an index needs a field of `SearchConfig`."""
    for method in INDEXES.values():
        fields = {field.name for field in dataclasses.fields(method)} - {"queries", "temperature"}  # pyright: ignore
        assert fields <= SETTINGS, method


@pytest.mark.parametrize(
    ("policy", "refresh", "options", "sentence"),
    [
        ({"search": "sro"}, "rollout", {}, "must be one of .*did you mean 'srp'"),
        ({"search": "srp"}, "step", {}, "add --candidates.refresh rollout"),
        ({"search": "srp", "kind": "iot"}, "rollout", {}, "needs --policy.kind itt"),
        ({"search": "srp", "choice": "sample"}, "rollout", {}, "use lazy_gumbel, rft or brute_force"),
        ({"search": "rft", "choice": "sample", "kernel": "softmax"}, "rollout", {}, "needs --policy.kernel dot"),
        ({"search": "hull", "latent": 6, "action_hidden": (6,)}, "rollout", {}, "at most 3 numbers"),
        ({"search": "srp"}, "rollout", {"regret": 0.1}, "--search.regret is an option of box_tree, coreset"),
        ({"search": "auto"}, "rollout", {"bits": 3}, "--search.bits is an option of srp"),
        ({"search": "srp"}, "rollout", {"bits": 99}, "bits must be between 1 and 20"),
        ({"search": "auto", "choice": "sample"}, "rollout", {"audit": 0.1}, "needs an argmax choice"),
        ({"search": "auto"}, "step", {"audit": 0.1}, "every choice is exact"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(
    policy: dict[str, Any], refresh: Any, options: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(UserError, match=sentence):
        make_policy(
            PolicyConfig(**policy), CandidatesConfig(refresh=refresh), STATE, SPACES["box"], SearchConfig(**options)
        )
