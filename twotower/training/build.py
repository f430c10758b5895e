"""From a task's name to the parts of a run."""

from dataclasses import replace
from typing import NamedTuple

from twotower import recipes
from twotower.config import DEFAULT_ITERATIONS, PolicyKind, TrainConfig
from twotower.envs import inspect
from twotower.envs.base import EnvSpec
from twotower.errors import UserError
from twotower.es import STRATEGIES, Strategy
from twotower.policies import make_policy
from twotower.policies.base import Policy


class Experiment(NamedTuple):
    """A configuration and what it stands for."""

    config: TrainConfig
    spec: EnvSpec
    policy: Policy
    strategy: Strategy


def task_config(task: str, kind: PolicyKind = "itt") -> TrainConfig:
    """The defaults of a task: its recipe, or the general ones for any other environment id."""
    recipe = recipes.find(task)
    if recipe is not None:
        return recipe.config(kind)
    config = TrainConfig(task=task, iterations=DEFAULT_ITERATIONS)
    return replace(config, policy=replace(config.policy, kind=kind))


def build(config: TrainConfig) -> Experiment:
    """The parts of a run; refuses choices that do not fit together."""
    spec = inspect(config.env, config.env_id or config.task, recipes.names())
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
    if config.strategy.common_random_numbers and config.strategy.estimator != "antithetic":
        raise UserError(
            "--strategy.common-random-numbers pairs the signs of a direction: use --strategy.estimator antithetic."
        )
    strategy = STRATEGIES[config.strategy.estimator](
        policy.num_params, config.strategy, state_params=policy.state_params, seed=config.seed
    )
    return Experiment(config, spec, policy, strategy)
