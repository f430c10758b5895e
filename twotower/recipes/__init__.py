"""Data only: the 15 tasks, read like the paper's tables."""

from twotower.config import nearest
from twotower.errors import UserError
from twotower.recipes.deepmind_control import DEEPMIND_CONTROL
from twotower.recipes.gym import ABLATIONS, GYM
from twotower.recipes.recipe import Recipe

__all__ = ["Recipe", "ablations", "find", "get", "names"]

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
