"""What can be tuned: a distribution for each option, where the configuration stands in it, and what it changes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from twotower.config import TrainConfig, from_dict, to_dict

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

Plain = dict[str, Any]


@dataclass(frozen=True)
class Knob:
    """One option to tune."""

    kind: Literal["real", "log", "whole", "choice"]
    values: tuple[Any, ...]
    """The ends of a range, or the choices."""
    read: Callable[[Plain], Any]
    """Where a configuration, as plain data, stands."""
    write: Callable[[Plain, Any], None]
    """Put a value in."""

    def distribution(self) -> "BaseDistribution":
        """As Optuna has it."""
        from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

        if self.kind == "choice":
            return CategoricalDistribution(self.values)
        low, high = self.values
        if self.kind == "whole":
            return IntDistribution(low, high, log=True)
        return FloatDistribution(low, high, log=self.kind == "log")

    def default(self, config: Plain) -> Any:
        """The configuration's own value, or the nearest in the range."""
        value = self.read(config)
        return value if self.kind == "choice" else min(max(value, self.values[0]), self.values[1])


def _field(part: str, name: str) -> tuple[Callable[[Plain], Any], Callable[[Plain, Any], None]]:
    def write(config: Plain, value: Any) -> None:
        config[part][name] = value

    return lambda config: config[part][name], write


def _step(config: Plain) -> float:
    """η as a multiple of 2σ²: how far θ moves against how far it is perturbed, if returns are scaled."""
    strategy = config["strategy"]
    return strategy["step_size"] / (2 * strategy["sigma"] ** 2)


def _write_step(config: Plain, value: float) -> None:
    config["strategy"]["step_size"] = 2 * config["strategy"]["sigma"] ** 2 * value


def _write_sigma(config: Plain, value: float) -> None:
    relative = _step(config)
    config["strategy"]["sigma"] = value
    _write_step(config, relative)


def _write_directions(config: Plain, value: int) -> None:
    share, before = _selection(config), config["strategy"]["num_directions"]
    if before and config["env"]["slots"] == 2 * before + 1:
        config["env"]["slots"] = 2 * value + 1  # a slot for every member, as before
    config["strategy"]["num_directions"] = value
    _write_selection(config, share)


def _selection(config: Plain) -> float:
    strategy = config["strategy"]
    return (strategy["top_directions"] or 1) / (strategy["num_directions"] or 1) if strategy["top_directions"] else 1.0


def _write_selection(config: Plain, value: float) -> None:
    count = config["strategy"]["num_directions"]
    config["strategy"]["top_directions"] = max(round(value * count), 1) if count else None


# Later ones depend on earlier ones, so they are written in this order.
KNOBS: dict[str, Knob] = {
    "sigma": Knob("log", (0.01, 3.0), _field("strategy", "sigma")[0], _write_sigma),
    "step": Knob("log", (0.05, 5.0), _step, _write_step),
    "directions": Knob("whole", (2, 64), lambda config: config["strategy"]["num_directions"] or 8, _write_directions),
    "selection": Knob("real", (0.1, 1.0), _selection, _write_selection),
    "shaping": Knob("choice", ("none", "ranks"), *_field("strategy", "shaping")),
    "rule": Knob("choice", ("sgd", "momentum", "adam", "clipup"), *_field("strategy", "step_rule")),
    "normaliser": Knob("choice", (False, True), *_field("policy", "normalise_observations")),
    "candidates": Knob("whole", (10, 10_000), *_field("candidates", "count")),
    "latent": Knob("whole", (1, 16), lambda config: config["policy"]["latent"] or 1, _field("policy", "latent")[1]),
    "scale": Knob("real", (0.0, 1.0), *_field("strategy", "initial_scale")),
}


def distributions(over: tuple[str, ...]) -> "dict[str, BaseDistribution]":
    """The space that is searched."""
    return {name: KNOBS[name].distribution() for name in over}


def defaults(config: TrainConfig, over: tuple[str, ...]) -> Plain:
    """The first trial: the configuration's own values."""
    plain = to_dict(config)
    return {name: KNOBS[name].default(plain) for name in over}


def applied(config: TrainConfig, values: Mapping[str, Any]) -> TrainConfig:
    """The configuration with a trial's values."""
    plain = to_dict(config)
    for name, knob in KNOBS.items():
        if name in values:
            knob.write(plain, values[name])
    return from_dict(type(config), plain)
