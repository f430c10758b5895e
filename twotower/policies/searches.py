"""Which searches a policy may use: the index family's compiled members, and those made for training."""

import dataclasses

from twotower.actions.base import BoxActions
from twotower.actions.refresh import Lifetime, lifetime
from twotower.config import SearchConfig, nearest
from twotower.errors import UserError
from twotower.policies.base import ImplicitPolicy, Policy
from twotower.search.base import CompiledIndex
from twotower.search.bounding_tree import levels_for
from twotower.search.registry import METHODS
from twotower.search.sampler import Sampler

INDEXES = {name: method for name, method in METHODS.items() if issubclass(method, CompiledIndex)}
SEARCHES = ("auto", "bounded", "corner", *INDEXES)
SETTINGS = frozenset(field.name for field in dataclasses.fields(SearchConfig)) - {"audit", "queries"}


def check_search(policy: Policy) -> None:
    """Refuse a search that does not fit the rest of the policy, or options it does not take."""
    config, name = policy.config, policy.config.search
    if name not in SEARCHES:
        raise UserError(f"--policy.search must be one of {', '.join(SEARCHES)}, not {name!r}{nearest(name, SEARCHES)}.")
    _check_options(policy)
    if name == "corner" and not (
        config.kind == "itt"
        and isinstance(policy.actions, BoxActions)
        and not config.action_hidden
        and config.choice == "argmax"
    ):
        raise UserError(
            "--policy.search corner is the closed form for ITT policies with a one-matrix action tower "
            "(no --policy.action-hidden), argmax choice and a box of actions; use --policy.search brute_force here."
        )
    if name == "bounded" and not (isinstance(policy, ImplicitPolicy) and can_bound(policy)):
        raise UserError(
            "--policy.search bounded is branch and bound for ITT policies with argmax choice, at most one hidden "
            "layer of ReLUs in the action tower, and candidates of a box kept for an iteration or fixed "
            "(--candidates.refresh iteration); use --policy.search auto here."
        )
    if name in INDEXES and name != "brute_force":
        _check_index(policy)


def _check_options(policy: Policy) -> None:
    name = policy.config.search
    method = INDEXES.get(name)
    takes = {field.name for field in dataclasses.fields(method)} & SETTINGS if method else set()  # pyright: ignore[reportArgumentType]
    for option in options(policy.search):
        if option not in takes:
            owners = [other for other, index in INDEXES.items() if option in index.__dataclass_fields__]  # pyright: ignore[reportAttributeAccessIssue]
            raise UserError(f"--search.{option} is an option of {', '.join(owners)}, not of --policy.search {name}.")
    if policy.search.audit and (policy.config.kind == "explicit" or policy.config.choice != "argmax"):
        raise UserError("--search.audit compares choices with the best candidate: it needs an argmax choice.")
    if policy.search.audit and (name == "corner" or lifetime(policy.candidates, policy.actions) is Lifetime.STEP):
        raise UserError(
            "--search.audit compares searches among kept candidates: with --candidates.refresh step, and with the "
            "corner, every choice is exact."
        )


def _check_index(policy: Policy) -> None:
    config, name = policy.config, policy.config.search
    if config.kind != "itt":
        raise UserError(f"--policy.search {name} searches the latents of two towers: it needs --policy.kind itt.")
    if lifetime(policy.candidates, policy.actions) is Lifetime.STEP:
        raise UserError(
            f"--policy.search {name} builds an index, which pays only for candidates that are kept: add "
            "--candidates.refresh rollout, iteration or fixed, or use --policy.search auto."
        )
    samples = issubclass(INDEXES[name], Sampler)
    if config.choice == "sample" and not samples:
        raise UserError(
            f"--policy.search {name} finds the best candidate: to sample one use lazy_gumbel, rft or brute_force."
        )
    if samples and config.kernel != "dot":
        raise UserError(f"--policy.search {name} samples by inner products: it needs --policy.kernel dot.")
    assert isinstance(policy, ImplicitPolicy)
    if name == "hull" and feature_size(policy) > 3:
        raise UserError(
            f"--policy.search hull is for action towers whose last matrix takes at most 3 numbers, not "
            f"{feature_size(policy)}; use --policy.search box_tree."
        )
    make_index(policy)  # refuses options without sense


def options(search: SearchConfig) -> dict[str, float | str]:
    """The options of the method that were chosen."""
    return {name: value for name in sorted(SETTINGS) if (value := getattr(search, name)) is not None}


def make_index(policy: Policy) -> CompiledIndex:
    """The index that a policy asks for, not yet built."""
    name = policy.config.search if policy.config.search in INDEXES else "box_tree"
    temperature = {"temperature": policy.config.temperature} if issubclass(INDEXES[name], Sampler) else {}
    return INDEXES[name](**options(policy.search), **temperature)


def feature_size(policy: ImplicitPolicy) -> int:
    """Numbers in a candidate's features, the action tower's last matrix left to the state's side."""
    return policy.tower_sizes[-1][-2]


def can_bound(policy: ImplicitPolicy) -> bool:
    """Whether branch and bound applies: a shared set in a box, scored by at most one hidden layer of ReLUs."""
    config = policy.config
    return (
        config.kind == "itt"
        and config.choice == "argmax"
        and isinstance(policy.actions, BoxActions)
        and lifetime(policy.candidates, policy.actions) is Lifetime.SHARED
        and (not config.action_hidden or (len(config.action_hidden) == 1 and config.activation == "relu"))
    )


def pays(policy: ImplicitPolicy) -> bool:
    """Whether bounds are likely to rule out more than they cost: only if the tree splits every dimension."""
    return policy.candidates.count >= 2048 and levels_for(policy.candidates.count) >= 1.5 * policy.action_size


def tree_pays(policy: ImplicitPolicy) -> bool:
    """Whether a tree for every rollout is likely to save more than it costs to build."""
    return (
        policy.config.kind == "itt"
        and policy.config.choice == "argmax"
        and lifetime(policy.candidates, policy.actions) is Lifetime.ROLLOUT
        and policy.candidates.count >= 4096
        and feature_size(policy) <= 8
    )
