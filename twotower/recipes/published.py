"""The paper's printed tables, as packaged data."""

import json
from functools import cache
from importlib.resources import files
from typing import Any


@cache
def _published() -> dict[str, Any]:
    return json.loads((files("twotower") / "experiments" / "published.json").read_text(encoding="utf-8"))


def table(name: str) -> dict[str, Any]:
    """One printed table, such as `final_scores_mean_std_10_seeds`."""
    return _published()[name]
