"""One file a published result; `twotower reproduce` runs them."""

from importlib import import_module
from typing import TYPE_CHECKING

from twotower.config import nearest
from twotower.errors import UserError

if TYPE_CHECKING:
    from twotower.experiments.result import Result

# In the paper's order; each is a module of this name (with _ for -) that has a RESULT.
RESULTS = (
    "scores", "curves", "wall-clock", "srp-curves", "srp-wall-clock", "exact-train-srp-serve", "lazy-curves",
    "lazy-wall-clock", "thresholds", "rft", "t-tests", "estimator-error", "fast", "search-return",
)  # fmt: skip


def get(name: str) -> "Result":
    """The result of this name."""
    if name not in RESULTS:
        hint = nearest(name, RESULTS)
        raise UserError(f"There is no result {name!r}{hint}; see: twotower reproduce --list")
    return import_module(f"twotower.experiments.{name.replace('-', '_')}").RESULT
