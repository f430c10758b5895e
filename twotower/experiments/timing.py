"""Timed runs: so few members that they take seconds, and from them what a full run would take."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from twotower.config import TrainConfig
from twotower.experiments.plan import Choice, Planned
from twotower.experiments.records import Finished

# Falls would end episodes early, and how early depends on the policy: so that all do the same work, they go on.
NO_FALLS = {"hopper", "walker2d"}
NOTE = (
    "Timed alone on the machine, over a few iterations after the first; Hopper's and Walker2d's episodes run on after "
    "a fall, so that all policies do the same work."
)


def timed(
    choice: Choice,
    config: TrainConfig,
    variant: str = "",
    *,
    iterations: int,
    directions: int | None,
    steps_per_episode: int | None = None,
) -> Planned:
    """A short run of which only the time matters."""
    kwargs = json.dumps({"terminate_when_unhealthy": False}) if config.task in NO_FALLS else config.env.kwargs
    config = replace(
        config,
        iterations=iterations if choice.size == "paper" else max(iterations // 2, 2),
        steps=None,
        workers=choice.workers,
        evaluation_episodes=1,
        strategy=replace(config.strategy, num_directions=directions),
        env=replace(config.env, kwargs=kwargs, max_episode_steps=steps_per_episode),
    )
    return Planned(config, variant, timed=True)


def seconds_per_step(run: Finished) -> float:
    """The median over all iterations but the first, which warms up, of wall-clock a step."""
    return float(np.median(_differences(run, "seconds") / _differences(run, "steps")))


def seconds_per_iteration(run: Finished) -> float:
    """Wall-clock of all iterations but the first, over their number."""
    return float(np.mean(_differences(run, "seconds")))


def _differences(run: Finished, name: str) -> np.ndarray:
    return np.diff([row[name] for row in run.rows])


def measured(runs: Sequence[Finished]) -> str:
    """What was measured."""
    steps = int(np.mean([run.rows[-1]["steps"] - run.rows[0]["steps"] for run in runs]))
    workers = runs[0].planned.config.workers
    return f"{len(runs)} × {len(runs[0].rows) - 1} iterations, {steps:,} steps each time, {workers} workers"
