"""The policies: θ + state → action."""

from twotower.actions.base import ActionSpace, BoxActions
from twotower.config import CandidatesConfig, PolicyConfig, SearchConfig
from twotower.errors import UserError
from twotower.policies.base import ImplicitPolicy, Policy
from twotower.policies.explicit import Explicit
from twotower.policies.one_tower import OneTower
from twotower.policies.searches import SEARCHES, check_search
from twotower.policies.two_tower import TwoTower

__all__ = ["KINDS", "SEARCHES", "Explicit", "ImplicitPolicy", "OneTower", "Policy", "TwoTower", "make_policy"]

KINDS: dict[str, type[Policy]] = {"itt": TwoTower, "iot": OneTower, "explicit": Explicit}


def make_policy(
    config: PolicyConfig,
    candidates: CandidatesConfig,
    observation_size: int,
    actions: ActionSpace,
    search: SearchConfig | None = None,
) -> Policy:
    """The policy a configuration names, after checking that its choices fit together and the action space."""
    if config.refinements and (
        candidates.refresh != "step" or not isinstance(actions, BoxActions) or config.choice == "sample"
    ):
        raise UserError(
            "--policy.refinements needs a box of actions, --candidates.refresh step and --policy.choice argmax."
        )
    policy = KINDS[config.kind](config, candidates, observation_size, actions, search or SearchConfig())
    check_search(policy)
    return policy
