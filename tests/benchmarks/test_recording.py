"""Replays are the recorded iterations to the last bit, and others are caught."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from twotower.benchmarks.recording import RecordingWorker
from twotower.benchmarks.throughput import Training, measure_training
from twotower.config import StrategyConfig, TrainConfig
from twotower.errors import UserError
from twotower.rollout.executors import Serial, make_executor
from twotower.runs import MetricsLog, RunFolder
from twotower.training import Trainer, build, task_config

CASES = {
    "hopper": task_config("hopper"),  # ends early
    "lunarlander": task_config("lunarlander"),  # steps draw from the environment's generator
    "gymnasium": task_config("cartpole"),
}


def config(case: str) -> TrainConfig:
    """Eleven members, more than there are slots, in short episodes."""
    found = CASES[case]
    env = replace(found.env, slots=3, max_episode_steps=40, backend="gymnasium" if case == "gymnasium" else "envpool")
    candidates = replace(found.candidates, count=20)
    return replace(found, executor="serial", env=env, candidates=candidates, strategy=StrategyConfig(num_directions=5))


@pytest.fixture(params=CASES)
def training(request, tmp_path):
    yield from make_training(config(request.param), tmp_path)


@pytest.fixture
def hopper(tmp_path):
    yield from make_training(config("hopper"), tmp_path)


def make_training(config: TrainConfig, folder: Path):
    experiment = build(config)
    trainer = Trainer(experiment, RunFolder(folder))
    log = MetricsLog(trainer.folder.metrics)
    with make_executor(config, experiment.spec, trainer.num_members, RecordingWorker) as executor:
        yield Training(trainer, executor, log)
    log.close()


def worker_of(training: Training) -> RecordingWorker:
    assert isinstance(training.executor, Serial)
    return training.executor.worker


def train(training: Training, iterations: int) -> None:
    for _ in range(iterations):
        training.iterate()


def test_a_replay_repeats_every_reward_of_several_iterations(training):
    train(training, 1)
    before = training.trainer.checkpoint.steps
    training.executor.call("record")
    train(training, 3)
    recorders = worker_of(training).recorders
    assert recorders is not None and len(recorders) == 3
    assert len({recorder.rewards[-1].tobytes() + bytes(len(recorder.rewards)) for recorder in recorders}) > 1
    for number in range(3):
        training.executor.call("rewind", number)
        training.executor.call("replay", number)
    for recorder in recorders:
        assert [r.tobytes() for r in recorder.replayed] == [r.tobytes() for r in recorder.rewards]
    steps = sum(training.executor.call("check", number)[0] for number in range(3))
    assert steps == training.trainer.checkpoint.steps - before > 100


def test_training_goes_on_after_a_replay_as_if_there_had_been_none(training, tmp_path):
    steps, iterations, replays = measure_training(training, 1e-9)
    assert steps == training.trainer.checkpoint.steps and len(iterations) == len(replays) == 1
    measure_training(training, 1e-9)
    train(training, 1)
    assert len(training.trainer.folder.metrics.read_text().splitlines()) == 3
    plain_config = training.trainer.experiment.config
    (tmp_path / "plain").mkdir()
    plain = Trainer(build(plain_config), RunFolder(tmp_path / "plain"))
    with make_executor(plain_config, plain.experiment.spec, plain.num_members) as executor:
        for _ in range(3):
            plain.iterate(executor)
    np.testing.assert_array_equal(training.trainer.checkpoint.theta, plain.checkpoint.theta)


@pytest.mark.parametrize("fault", ["rewards", "actions", "no rewind", "no replay", "too short"])
def test_a_replay_that_differs_is_caught(hopper, fault):
    hopper.executor.call("record")
    train(hopper, 1)
    worker = worker_of(hopper)
    assert worker.recorders is not None
    recorder = worker.recorders[0]
    if fault == "actions":
        recorder.calls[1][1][0] += 1e-3
    elif fault == "rewards":
        recorder.rewards[-1] = np.nextafter(recorder.rewards[-1], 9.0)
    elif fault == "too short":
        del recorder.calls[-1]
    if fault != "no rewind":
        worker.rewind(0)
    if fault != "no replay":
        worker.replay(0)
    with pytest.raises(UserError, match="replay of iteration 0"):
        worker.check(0)


def test_nothing_is_remembered_unless_asked_for_and_old_iterations_are_forgotten(hopper):
    train(hopper, 1)
    assert worker_of(hopper).recorders is None
    for _ in range(2):
        hopper.executor.call("record")
        train(hopper, 1)
        recorders = worker_of(hopper).recorders
        assert recorders is not None and len(recorders) == 1
