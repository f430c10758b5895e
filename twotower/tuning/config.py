"""What a user can choose about tuning: everything `train` takes, and how to search."""

from dataclasses import dataclass, fields
from typing import Any

from twotower.config import PresetName, TrainConfig, from_dict, nearest, to_dict
from twotower.errors import UserError
from twotower.tuning.space import KNOBS


@dataclass(frozen=True)
class TuneConfig(TrainConfig):
    """Search the options of `train` that suit a task; name a study's folder in place of the task to go on with it."""

    preset: PresetName = "fast"
    """Where the first trial's options come from, and those that are not tuned."""
    trials: int = 20
    """Combinations of options to try; the first is the preset's own."""
    over: tuple[str, ...] = ("sigma", "step", "directions", "selection")
    """What to tune: sigma, step, directions, selection, shaping, rule, normaliser, candidates, latent, scale."""
    seeds: int = 1
    """Runs a trial, whose mean counts, each with a seed of its own."""
    rungs: int = 4
    """How often a trial is evaluated on its way to `steps`; one below the median of those before it ends there."""
    abreast: int = 2
    """Trials chosen at once, which run side by side; part of the result, so never derived from the machine."""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("trials", "seeds", "rungs", "abreast"):
            if getattr(self, name) < 1:
                raise UserError(f"--{name} must be at least 1, not {getattr(self, name)}.")
        if self.iterations is not None:
            raise UserError("A trial's budget is --steps: iterations cost different times as M changes.")
        for name in self.over:
            if name not in KNOBS:
                raise UserError(f"--over takes {', '.join(KNOBS)}, not {name!r}{nearest(name, KNOBS)}.")
        if not self.over or len(set(self.over)) < len(self.over):
            raise UserError("--over takes at least one option, each once.")

    def train_config(self, **changes: Any) -> TrainConfig:
        """What `train` would be told, without the search."""
        plain = to_dict(self)
        return from_dict(TrainConfig, {field.name: plain[field.name] for field in fields(TrainConfig)} | changes)
