"""twotower: implicit two-tower policies, trained by evolution strategies."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from twotower import actions, es, policies, recipes, search
    from twotower.analysis.report import write_report
    from twotower.analysis.video import Video, record_video
    from twotower.api import Run, resume, train
    from twotower.config import CandidatesConfig, EnvConfig, PolicyConfig, SearchConfig, StrategyConfig, TrainConfig
    from twotower.errors import UserError
    from twotower.runs import Evaluation, PolicyFile, read_metrics
    from twotower.training import TrainedPolicy, evaluate_policy, load

_HOMES = {
    "twotower.analysis.report": ("write_report",),
    "twotower.analysis.video": ("Video", "record_video"),
    "twotower.api": ("Run", "resume", "train"),
    "twotower.config": (
        "CandidatesConfig",
        "EnvConfig",
        "PolicyConfig",
        "SearchConfig",
        "StrategyConfig",
        "TrainConfig",
    ),
    "twotower.errors": ("UserError",),
    "twotower.runs": ("Evaluation", "PolicyFile", "read_metrics"),
    "twotower.training": ("TrainedPolicy", "evaluate_policy", "load"),
}
_ROOMS = ("actions", "es", "policies", "recipes", "search")
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [
    "CandidatesConfig",
    "EnvConfig",
    "Evaluation",
    "PolicyConfig",
    "PolicyFile",
    "Run",
    "SearchConfig",
    "StrategyConfig",
    "TrainConfig",
    "TrainedPolicy",
    "UserError",
    "Video",
    "actions",
    "es",
    "evaluate_policy",
    "load",
    "policies",
    "read_metrics",
    "recipes",
    "record_video",
    "resume",
    "search",
    "train",
    "write_report",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is first used, so that `import twotower` itself is instant."""
    if name in _HOME_OF:
        return getattr(import_module(_HOME_OF[name]), name)
    if name in _ROOMS:
        return import_module(f"twotower.{name}")
    raise AttributeError(f"module 'twotower' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
