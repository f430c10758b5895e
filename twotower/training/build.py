"""From a configuration to the parts of a run."""

from typing import NamedTuple

from twotower import recipes
from twotower.config import TrainConfig
from twotower.envs import inspect
from twotower.envs.base import EnvSpec
from twotower.errors import UserError
from twotower.es import STRATEGIES, Strategy
from twotower.policies import make_policy
from twotower.policies.base import Policy
from twotower.rollout.executors import check_executor


class Experiment(NamedTuple):
    """A configuration and what it stands for."""

    config: TrainConfig
    spec: EnvSpec
    policy: Policy
    strategy: Strategy


def build(config: TrainConfig) -> Experiment:
    """The parts of a run; refuses choices that do not fit together."""
    if config.iterations is None and config.steps is None:
        raise UserError("A run needs a budget: give --iterations or --steps.")
    check_executor(config)
    spec = inspect(config.env, config.env_id or config.task, recipes.names())
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions, config.search)
    if config.strategy.common_random_numbers and config.strategy.estimator != "antithetic":
        raise UserError(
            "--strategy.common-random-numbers pairs the signs of a direction: use --strategy.estimator antithetic."
        )
    strategy = STRATEGIES[config.strategy.estimator](
        policy.num_params, config.strategy, state_params=policy.state_params, seed=config.seed
    )
    return Experiment(config, spec, policy, strategy)
