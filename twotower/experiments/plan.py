"""Which runs a result needs: a configuration each, and the folder it is kept in."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from twotower.config import PolicyKind, TrainConfig, to_dict
from twotower.recipes import find, task_config

Size = Literal["quick", "paper"]
KINDS: tuple[PolicyKind, ...] = ("itt", "iot", "explicit")

# None of these changes a bit of what is learnt; seed and budget stand in the folder's name.
_NOT_HASHED = (
    "seed", "iterations", "steps", "workers", "executor", "worker_timeout", "run_dir", "checkpoint_seconds", "plain",
)  # fmt: skip


@dataclass(frozen=True)
class Planned:
    """One run to be had."""

    config: TrainConfig
    variant: str = ""
    """What distinguishes it from the recipe's run, such as `lazy`."""
    timed: bool = False
    """Whether its time is what is wanted: it then runs alone, with all workers."""
    short: bool = False
    """Whether it trains fewer iterations or directions than the paper."""

    @property
    def cell(self) -> tuple[str, str, str]:
        """Task, policy and variant: what seeds are gathered by."""
        return self.config.task, self.config.policy.kind, self.variant

    @property
    def stem(self) -> str:
        """The folder's name without the budget: task, policy, variant, seed and a hash of all that matters."""
        config = self.config
        words = [config.task, config.policy.kind, self.variant, f"s{config.seed}", configuration_hash(config)]
        return "-".join(re.sub(r"[^A-Za-z0-9._]+", "-", word).strip("-") for word in words if word)

    @property
    def name(self) -> str:
        """The folder's name; a run timed with other workers is another run."""
        suffix = f"-timed{self.config.workers}" if self.timed else ""
        return f"{self.stem}-{budget_name(self.config)}{suffix}"


@dataclass(frozen=True)
class Choice:
    """What the user asked for, as far as it decides which runs there are."""

    size: Size = "quick"
    seeds: int | None = None
    tasks: tuple[str, ...] = ()
    policies: tuple[PolicyKind, ...] = ()
    iterations: int | None = None
    """At most this many iterations a run."""
    workers: int = 1

    def num_seeds(self, paper: int) -> int:
        """How many seeds, where the paper has this many."""
        return self.seeds or (min(2, paper) if self.size == "quick" else paper)

    def kinds(self) -> tuple[PolicyKind, ...]:
        """The policies to compare."""
        return self.policies or KINDS


@dataclass(frozen=True)
class Short:
    """A quick run: enough iterations to see that it works, no more."""

    iterations: int = 3
    directions: int | None = None
    """At most this many directions; None keeps the recipe's."""
    steps_per_episode: int | None = None
    """Episodes are cut after this many steps; None keeps the task's limit."""
    episodes: int = 5
    """Episodes of the final evaluation."""


QUICK = {
    "cartpole": Short(60),
    "acrobot": Short(60),
    "mountaincar": Short(200),
    "mountaincarcontinuous": Short(60),
    "invertedpendulum": Short(6),
    "lunarlander": Short(8),
    "swimmer": Short(5),
    "hopper": Short(6, directions=16),
    "halfcheetah": Short(3, directions=8),
    "walker2d": Short(4, directions=8),
}
QUICK_DEEPMIND_CONTROL = Short(3, directions=4, steps_per_episode=250, episodes=2)
QUICK_ANY = Short(3, directions=8)


def planned(choice: Choice, config: TrainConfig, variant: str = "", timed: bool = False) -> Planned:
    """A run of this configuration within the budget asked for."""
    full = config
    if choice.size == "quick":
        config = _shortened(config)
    else:
        config = replace(config, evaluation_episodes=100)
    if choice.iterations is not None and config.iterations is not None:
        config = replace(config, iterations=min(config.iterations, choice.iterations))
    if timed:
        config = replace(config, workers=choice.workers, evaluation_episodes=1)
    short = (config.iterations, config.strategy, config.env) != (full.iterations, full.strategy, full.env)
    return Planned(config, variant, timed, short)


def variants_planned(
    choice: Choice,
    tasks: Iterable[str],
    variants: Iterable[str],
    configuration: Callable[[TrainConfig, str], TrainConfig],
    seeds: int,
) -> list[Planned]:
    """Every task, or the user's, with every variant of ITT and seed."""
    return [
        planned(choice, configuration(base(task, seed=seed), variant), variant)
        for task in choice.tasks or tasks
        for variant in variants
        for seed in range(choice.num_seeds(seeds))
    ]


def base(task: str, kind: PolicyKind = "itt", seed: int = 0, **changes: Any) -> TrainConfig:
    """The configuration of a recipe or any environment id, with some of its fields replaced."""
    return replace(task_config(task, kind), seed=seed, **changes)


def printed_row(printed: Mapping[str, Any], task: str) -> dict[Any, Any]:
    """A task's row in one of the paper's tables, by whichever of its names it has there; empty if it has none."""
    recipe = find(task)
    names = recipe.paper_ids if recipe else (task,)
    return next((printed[name] for name in names if name in printed), {})


def configuration_hash(config: TrainConfig) -> str:
    """Eight digits that name a configuration; options that later versions add change nothing until they are used."""
    plain = to_dict(config)
    used = _differences(plain, to_dict(TrainConfig(task="")))
    used = {name: value for name, value in used.items() if name not in _NOT_HASHED}
    return hashlib.sha256(json.dumps(used, sort_keys=True).encode()).hexdigest()[:8]


def budget_name(config: TrainConfig) -> str:
    """The budget as part of a folder's name."""
    parts = [f"{config.iterations}it"] if config.iterations else []
    parts += [f"{config.steps}steps"] if config.steps else []
    return "-".join(parts)


def _differences(plain: dict[str, Any], default: dict[str, Any]) -> dict[str, Any]:
    """What is not as by default, part by part."""
    found: dict[str, Any] = {}
    for name, value in plain.items():
        usual = default.get(name)
        if isinstance(value, dict) and isinstance(usual, dict):
            value = _differences(value, usual)
            if value:
                found[name] = value
        elif value != usual:
            found[name] = value
    return found


def _shortened(config: TrainConfig) -> TrainConfig:
    """The quick version of a run."""
    recipe = find(config.task)
    name = recipe.name.split("-itt-")[0] if recipe else ""
    short = QUICK.get(name, QUICK_DEEPMIND_CONTROL if recipe else QUICK_ANY)
    wanted = config.strategy.num_directions
    directions = wanted if short.directions is None else min(short.directions, wanted or short.directions)
    return replace(
        config,
        iterations=min(short.iterations, config.iterations or short.iterations),
        evaluation_episodes=short.episodes,
        strategy=replace(config.strategy, num_directions=directions),
        env=replace(config.env, max_episode_steps=short.steps_per_episode or config.env.max_episode_steps),
    )
