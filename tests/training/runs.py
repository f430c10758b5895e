"""Small runs of every kind of schedule and environment, to interrupt and compare."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from twotower.api import merged
from twotower.config import TrainConfig
from twotower.runs import Checkpoint, RunFolder, read_metrics
from twotower.training import Trainer, build, task_config

WORLD = "tests.worlds:World-v0"
SMALL: dict[str, Any] = {
    "seed": 5,
    "iterations": 6,
    "executor": "serial",
    "evaluation_episodes": 3,
    "candidates": {"count": 40},
    "strategy": {"num_directions": 4},
    "env": {"slots": 5, "max_episode_steps": 40},
}
CIRCUMSTANCES = ("seconds", "per_s", "workers", "bytes")  # of a row of metrics: not part of the result
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "hopper, step": ("hopper", {}),
    "hopper, rollout, lazy": ("hopper", {"candidates": {"refresh": "rollout"}, "strategy": {"lazy": 3}}),
    "hopper, iteration, lazy": ("hopper", {"candidates": {"refresh": "iteration"}, "strategy": {"lazy": 2}}),
    "hopper, iteration, lazy by chance": (
        "hopper", {"candidates": {"refresh": "iteration"}, "strategy": {"lazy_decay": 0.4}},
    ),
    "hopper, fixed": ("hopper", {"candidates": {"refresh": "fixed", "draw": "sobol"}}),
    "hopper, rollout, tree, lazy": (
        "hopper",
        {
            "candidates": {"refresh": "rollout"}, "policy": {"search": "box_tree"}, "search": {"audit": 0.1},
            "strategy": {"lazy": 2},
        },
    ),
    "hopper, iteration, srp, lazy": (
        "hopper",
        {
            "candidates": {"refresh": "iteration"}, "policy": {"search": "srp"},
            "search": {"bits": 3, "budget": 20, "audit": 1.0}, "strategy": {"lazy": 3},
        },
    ),
    "hopper, rollout, coreset, lazy": (
        "hopper",
        {
            "candidates": {"refresh": "rollout"}, "policy": {"search": "coreset"},
            "search": {"directions": 3, "queries": 9}, "strategy": {"lazy": 2},
        },
    ),
    "hopper, common": ("hopper", {"strategy": {"common_random_numbers": True}}),
    "hopper, forward": ("hopper", {"strategy": {"estimator": "forward_difference", "directions": "structured"}}),
    "hopper, normalised, adam": (
        "hopper",
        {
            "policy": {"normalise_observations": True},
            "strategy": {"step_rule": "adam", "shaping": "ranks", "episodes_per_member": 2},
        },
    ),
    "lunarlander, step": ("lunarlander", {}),
    "lunarlander, iteration, lazy": (
        "lunarlander", {"candidates": {"refresh": "iteration"}, "strategy": {"lazy": 2, "sigma_decay": 0.9}},
    ),
    "cartpole": ("cartpole", {"iterations": 67, "strategy": {"num_directions": 1}, "env": {"slots": 2}}),
    "world": (WORLD, {"env": {"max_episode_steps": None}, "strategy": {"step_decay": 0.9}}),
    "world, sampled": (
        WORLD, {"env": {"kwargs": json.dumps({"action": "discrete"})}, "policy": {"choice": "sample"}},
    ),
}  # fmt: skip


def variant(name: str, **options: Any) -> TrainConfig:
    """The configuration of a variant."""
    task, changes = VARIANTS[name]
    if task != WORLD and importlib.util.find_spec("envpool") is None:
        pytest.skip("EnvPool is not installed")
    return merged(merged(merged(task_config(task), SMALL), changes), options)


def new_folder(config: TrainConfig, path: Path) -> RunFolder:
    """The folder of a run that has yet to begin."""
    return RunFolder.create(merged(config, {"run_dir": str(path)}))


def train_on(folder: RunFolder, stop_after: int | None = None) -> Trainer:
    """Train from the folder's checkpoint, and die after an iteration if told to."""
    trainer = Trainer(build(folder.read_config()), folder)

    def report(row: dict[str, Any]) -> None:
        if row["iteration"] == stop_after:
            raise Died

    trainer.run(report)
    return trainer


class Died(BaseException):
    """What no handler expects, as a kill is."""


def result(folder: RunFolder) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All of a run's checkpoint and metrics that measures neither time nor who did the work."""
    checkpoint = Checkpoint.load(folder.checkpoint)._asdict()
    timeless = {name: value for name, value in checkpoint.items() if name not in ("seconds", "metrics_bytes")}
    return (
        {name: value.tobytes() if hasattr(value, "tobytes") else value for name, value in timeless.items()},
        [
            {name: value for name, value in row.items() if not any(part in name for part in CIRCUMSTANCES)}
            for row in read_metrics(folder.metrics)
        ],
    )


def same_for_all_workers(name: str, path: Path, **options: Any) -> None:
    """Assert that five iterations give the same bits for any number of workers, in processes or not."""
    results = []
    for executor, workers in (("serial", 1), ("processes", 1), ("processes", 2), ("processes", 4)):
        config = variant(name, iterations=5, executor=executor, workers=workers, **options)
        folder = new_folder(config, path / f"{executor}-{workers}")
        train_on(folder)
        results.append(result(folder))
    assert len(results[0][1]) == 5
    for other in results[1:]:
        assert other == results[0]
