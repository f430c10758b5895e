"""The policies: θ + state → action."""

from twotower.actions.base import ActionSpace, BoxActions
from twotower.config import CandidatesConfig, PolicyConfig
from twotower.errors import UserError
from twotower.policies.actor import can_bound
from twotower.policies.base import ImplicitPolicy, Policy
from twotower.policies.explicit import Explicit
from twotower.policies.one_tower import OneTower
from twotower.policies.two_tower import TwoTower

SEARCHES = ("auto", "brute_force", "bounded", "corner")
KINDS: dict[str, type[Policy]] = {"itt": TwoTower, "iot": OneTower, "explicit": Explicit}


def make_policy(
    config: PolicyConfig, candidates: CandidatesConfig, observation_size: int, actions: ActionSpace
) -> Policy:
    """The policy a configuration names, after checking that its choices fit together and the action space."""
    boxed = isinstance(actions, BoxActions)
    if config.search not in SEARCHES:
        raise UserError(f"--policy.search must be one of {', '.join(SEARCHES)}, not {config.search!r}.")
    if config.search == "corner" and not (
        config.kind == "itt" and boxed and not config.action_hidden and config.choice == "argmax"
    ):
        raise UserError(
            "--policy.search corner is the closed form for ITT policies with a one-matrix action tower "
            "(no --policy.action-hidden), argmax choice and a box of actions; use --policy.search brute_force here."
        )
    if config.refinements and (candidates.refresh != "step" or not boxed or config.choice == "sample"):
        raise UserError(
            "--policy.refinements needs a box of actions, --candidates.refresh step and --policy.choice argmax."
        )
    policy = KINDS[config.kind](config, candidates, observation_size, actions)
    if config.search == "bounded" and not (isinstance(policy, ImplicitPolicy) and can_bound(policy)):
        raise UserError(
            "--policy.search bounded is branch and bound for ITT policies with argmax choice, at most one hidden "
            "layer of ReLUs in the action tower, and candidates of a box kept for an iteration or fixed "
            "(--candidates.refresh iteration); use --policy.search auto here."
        )
    return policy
