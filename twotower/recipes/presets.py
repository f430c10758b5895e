"""Ways to train besides the paper's: what all tasks share, and in what a task differs."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from twotower.config import EnvConfig, PolicyConfig, PolicyKind, StrategyConfig, TrainConfig


class Own(NamedTuple):
    """In what a task differs from its preset."""

    strategy: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    steps: int | None = None


@dataclass(frozen=True)
class Preset:
    """Everything but the task, the seed and where the run goes."""

    kind: PolicyKind
    """The policy unless another is asked for."""
    steps: int
    """The budget of environment steps unless another is asked for."""
    policy: PolicyConfig
    strategy: StrategyConfig
    slots: int | None = None
    """None takes one for every member of an iteration, so that all episodes of equal length end together."""
    tasks: dict[str, Own] = field(default_factory=dict)
    """What differs, by the environment's name without its version."""

    def config(self, task: str, env_id: str, kind: PolicyKind | None = None) -> TrainConfig:
        """The preset for a task, without a budget."""
        own = self._own(env_id)
        strategy = dataclasses.replace(self.strategy, **own.strategy)
        return TrainConfig(
            task=task,
            env_id=env_id if env_id != task else None,
            policy=dataclasses.replace(self.policy, kind=kind or self.kind, **own.policy),
            strategy=strategy,
            env=EnvConfig(slots=self.slots or 2 * (strategy.num_directions or 0) + 1),
        )

    def budget(self, env_id: str) -> int:
        """The environment steps that training takes unless told otherwise."""
        return self._own(env_id).steps or self.steps

    def _own(self, env_id: str) -> Own:
        return self.tasks.get(env_id.rsplit("-v", 1)[0], Own())


def ars(num_directions: int, top: int, alpha: float, nu: float, bonus: float = 0.0) -> dict[str, Any]:
    """ARS's hyperparameters in our names: its α is the step size of a gradient without the factor 1/(2σ)."""
    return {
        "num_directions": num_directions,
        "top_directions": top,
        "sigma": nu,
        "step_size": 2 * nu * alpha,
        "survival_bonus": bonus,
    }


def sized(num_directions: int, top: int, sigma: float, relative_step: float = 1.0, **others: Any) -> dict[str, Any]:
    """A step whose size follows σ: η is `relative_step` times 2σ², so θ moves in proportion to its perturbations."""
    return {
        "num_directions": num_directions,
        "top_directions": top,
        "sigma": sigma,
        "step_size": 2 * sigma**2 * relative_step,
        **others,
    }


def settling(steps: int) -> dict[str, Any]:
    """σ falls to a fifth over so many environment steps, and θ moves in proportion."""
    return {"sigma_decay": 0.2, "step_decay": 0.2**2, "decay_steps": steps}


# Tuned on seeds from 1000 on; budgets in steps are those in which the paper's final scores should be reached.
SMALL = Own(steps=500_000)
LINEAR_ACTION_TOWER = {"action_hidden": ()}
FAST = Preset(
    kind="itt",
    steps=1_000_000,
    policy=PolicyConfig(latent=6, action_hidden=(6,), hidden=(6,), normalise_observations=True),
    strategy=StrategyConfig(scale_returns=True, **sized(8, 8, 0.3)),
    tasks={
        "Swimmer": Own(sized(8, 8, 0.1, initial_state_scale=0.0), LINEAR_ACTION_TOWER, 3_000_000),
        "LunarLanderContinuous": Own(sized(16, 8, 1.0)),
        "Hopper": Own(sized(32, 16, 0.2, survival_bonus=1.0), steps=5_000_000),
        "Walker2d": Own(sized(32, 16, 0.3, survival_bonus=1.0), steps=5_000_000),
        "HalfCheetah": Own(sized(32, 16, 0.3, **settling(10_000_000)), LINEAR_ACTION_TOWER, 10_000_000),
        "CartPole": SMALL,
        "MountainCar": SMALL,
        "Acrobot": SMALL,
        "MountainCarContinuous": SMALL,
        "Ant": Own(sized(32, 16, 0.3, survival_bonus=1.0)),
        "Humanoid": Own(sized(32, 16, 0.3, survival_bonus=5.0)),
    },
)

# Mania, Guy and Recht (2018), Table 9, and what RL Baselines3 Zoo and Stable-Baselines3-contrib take elsewhere.
ARS = Preset(
    kind="explicit",
    steps=1_000_000,
    policy=PolicyConfig(normalise_observations=True),
    strategy=StrategyConfig(directions="independent", scale_returns=True, initial_scale=0.0, **ars(8, 8, 0.02, 0.05)),
    slots=64,
    tasks={
        "Swimmer": Own(ars(1, 1, 0.02, 0.01)),
        "Hopper": Own(ars(8, 4, 0.01, 0.025, bonus=1.0)),
        "HalfCheetah": Own(ars(32, 4, 0.02, 0.03)),
        "Walker2d": Own(ars(40, 30, 0.03, 0.025, bonus=1.0)),
        "Ant": Own(ars(60, 20, 0.015, 0.025, bonus=1.0)),
        "MountainCarContinuous": Own(ars(16, 16, 0.02, 0.05)),
    },
)

PRESETS = {"fast": FAST, "ars": ARS}
