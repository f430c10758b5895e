"""Data only: the 15 tasks, read like the paper's tables."""

from dataclasses import replace

from twotower.config import DEFAULT_ITERATIONS, PolicyKind, PresetName, TrainConfig, nearest
from twotower.errors import UserError
from twotower.recipes.deepmind_control import DEEPMIND_CONTROL
from twotower.recipes.gym import ABLATIONS, GYM
from twotower.recipes.presets import PRESETS
from twotower.recipes.recipe import Recipe

__all__ = ["PRESETS", "Recipe", "ablations", "budgeted", "find", "get", "names", "task_config"]

_RECIPES = {recipe.name: recipe for recipe in (*GYM, *DEEPMIND_CONTROL, *ABLATIONS)}


def names() -> list[str]:
    """The 15 tasks, in the paper's order."""
    return [recipe.name for recipe in (*GYM, *DEEPMIND_CONTROL)]


def ablations() -> list[str]:
    """The smaller two-tower networks of the paper's ablation."""
    return [recipe.name for recipe in ABLATIONS]


def get(name: str) -> Recipe:
    """The recipe of this exact name."""
    if name not in _RECIPES:
        raise UserError(f"There is no recipe {name!r}{nearest(name, _RECIPES)}; see: twotower tasks")
    return _RECIPES[name]


def find(task: str) -> Recipe | None:
    """The recipe whose name, environment id or name in the paper this is, in any case, if there is one."""
    wanted = task.lower()
    for recipe in _RECIPES.values():
        if wanted in {known.lower() for known in (recipe.name, recipe.env_id, *recipe.paper_ids)}:
            return recipe
    return None


def task_config(task: str, kind: PolicyKind | None = None, preset: PresetName = "paper") -> TrainConfig:
    """The defaults of a task: a preset's, or its recipe's, or the general ones for any other environment id."""
    recipe = find(task)
    if preset != "paper":
        if preset not in PRESETS:
            raise UserError(f"There is no preset {preset!r}: choose paper, {' or '.join(PRESETS)}.")
        name, env_id = (recipe.name, recipe.env_id) if recipe else (task, task)
        return replace(PRESETS[preset].config(name, env_id, kind), preset=preset)
    if recipe:
        return recipe.config(kind or "itt")
    config = TrainConfig(task=task, iterations=DEFAULT_ITERATIONS)
    return replace(config, policy=replace(config.policy, kind=kind or "itt"))


def budgeted(config: TrainConfig) -> TrainConfig:
    """With the preset's budget of steps, if neither iterations nor steps were given."""
    if config.preset == "paper" or config.iterations is not None or config.steps is not None:
        return config
    return replace(config, steps=PRESETS[config.preset].budget(config.env_id or config.task))
