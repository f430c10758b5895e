"""Training that is killed again and again."""

import time
from pathlib import Path

from tests.command import start, twotower
from tests.training.runs import new_folder, result, train_on
from twotower.api import merged
from twotower.config import TrainConfig
from twotower.randomness import generator
from twotower.runs import Checkpoint, RunFolder, load_policy_source


def finish_killing(config: TrainConfig, path: Path, kills: int, seed: int) -> int:
    """Train by commands of which `kills` die at random instants; assert the whole run's bits; how many died."""
    config = merged(config, {"checkpoint_seconds": 0.0})
    folder = new_folder(config, path / "killed")
    random, killed = generator(seed), 0
    each = (config.iterations or 0) / (kills + 1)
    while killed < kills:
        process = start("resume", "killed", cwd=path)
        # Some die while they start, the others within the next few iterations.
        goal = iteration(folder) + random.integers(0, int(each)) if random.random() < 0.8 else 0
        patience = time.monotonic() + (120 if goal else random.uniform(0, 1.5))
        while process.poll() is None and time.monotonic() < patience and (not goal or iteration(folder) < goal):
            time.sleep(0.002)
        time.sleep(random.uniform(0, 0.05))
        killed += process.poll() is None
        process.kill()
        process.communicate()
        assert iteration(folder) < (config.iterations or 0), "it ended before it could be killed: train longer"
    twotower("resume", "killed", cwd=path)
    whole = new_folder(config, path / "whole")
    train_on(whole)
    assert result(RunFolder(folder.path)) == result(whole)
    return killed


def iteration(folder: RunFolder) -> int:
    """How far the run's checkpoint is, which must be readable at any instant, like its policy."""
    if not folder.checkpoint.exists():
        return 0
    if folder.policy.exists():
        load_policy_source(folder.path)
    return Checkpoint.load(folder.checkpoint).iteration
