"""What breaks under way is said in one sentence that names what reproduces it, and nothing hangs."""

import dataclasses
import json
import os
import pickle
import re
import signal
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from twotower.config import EnvConfig, StrategyConfig, TrainConfig
from twotower.envs import inspect
from twotower.errors import UserError
from twotower.policies import make_policy
from twotower.randomness import Domain
from twotower.rollout.executors import Processes, make_executor
from twotower.rollout.plan import Job, evaluation_job, population_plan
from twotower.rollout.worker import Returns
from twotower.runs import Checkpoint, RunFolder
from twotower.training import Trainer, build

MEMBERS = 21


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def prepared(executor: Any, fault: str, workers: int = 2, timeout: float = 300.0, **fragile: Any) -> tuple[Any, Job]:
    """An executor, and a job whose faulty members it will meet."""
    config = TrainConfig(
        "fragile:Fragile-v0",
        seed=6,
        executor=executor,
        workers=workers,
        worker_timeout=timeout,
        strategy=StrategyConfig(num_directions=10),
        env=EnvConfig(slots=4, kwargs=json.dumps({"fault": fault, **fragile})),
    )
    spec = inspect(config.env, config.task)
    theta = np.ones(make_policy(config.policy, config.candidates, spec.observation_size, spec.actions).num_params)
    job = evaluation_job(theta, MEMBERS, 4)
    job = job._replace(domain=Domain.ENVIRONMENT, iteration=9, plan=population_plan(MEMBERS, 4, paired=False))
    return make_executor(config, spec, MEMBERS), job


@pytest.mark.parametrize("executor", ["serial", "processes"])
def test_an_environment_that_raises_is_reported_with_what_starts_its_episode_again(executor: str) -> None:
    workers, job = prepared(executor, "raise")
    with workers, pytest.raises(UserError) as error:
        workers.evaluate(job)
    sentence = str(error.value)
    match = re.search(
        r"fragile:Fragile-v0 raised RuntimeError: the motor broke in step (\d+) of member (\d+), "
        r"iteration 9; reset\(seed=(\d+)\) of run seed 6",
        sentence,
    )
    assert match, sentence
    step, member, seed = map(int, match.groups())
    assert step == 2 and 0 <= member < MEMBERS
    # The named seed does start an episode that breaks.
    environment = gymnasium.make("fragile:Fragile-v0", fault="raise", disable_env_checker=True)
    environment.reset(seed=seed)
    with pytest.raises(RuntimeError, match="the motor broke"):
        for _ in range(step + 1):
            environment.step(np.zeros(2, np.float32))


def test_after_a_failure_the_workers_can_be_asked_again() -> None:
    workers, job = prepared("processes", "raise")
    with workers:
        for _ in range(2):
            with pytest.raises(UserError, match="the motor broke"):
                workers.evaluate(job)


def same(left: Returns, right: Returns) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


def undisturbed() -> Returns:
    workers, job = prepared("serial", "")
    with workers:
        return workers.evaluate(job)


@pytest.mark.parametrize("fault", ["die", "stop"])
def test_a_worker_lost_in_mid_rollout_is_replaced_and_no_bit_changes(fault: str, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    flag.touch()
    workers, job = prepared("processes", fault, timeout=8.0, flag=str(flag), once=True)
    with workers:
        for replaced in (1, 0):
            assert same(workers.evaluate(job), undisturbed())
            assert workers.account.replaced == replaced
    assert not flag.exists()


def test_workers_killed_while_idle_are_replaced() -> None:
    workers, job = prepared("processes", "")
    with workers:
        for worker in workers.workers:
            os.kill(worker.process.pid, signal.SIGKILL)
        assert same(workers.evaluate(job), undisturbed())
        assert workers.account.replaced == 2


def test_work_that_kills_every_worker_ends_in_a_sentence() -> None:
    workers, job = prepared("processes", "die")
    with workers, pytest.raises(UserError, match=r"Worker \d died 5 times at the same work .*signal 9.*--workers"):
        workers.evaluate(job)
    assert all(worker.process.poll() is not None for worker in workers.workers)


def test_what_stops_training_costs_no_iteration(tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    config = TrainConfig(
        "fragile:Fragile-v0",
        iterations=6,
        workers=1,
        strategy=StrategyConfig(num_directions=4),
        env=EnvConfig(slots=2, kwargs=json.dumps({"fault": "raise", "flag": str(flag)})),
    )

    def breaking(row: dict[str, Any]) -> None:
        if row["iteration"] == 3:
            flag.touch()

    whole, broken = (Trainer(build(config), RunFolder(tmp_path / name)) for name in ("whole", "broken"))
    for trainer in (whole, broken):
        trainer.folder.path.mkdir()
    whole.run()
    with pytest.raises(UserError, match="the motor broke"):
        broken.run(breaking)
    assert Checkpoint.load(broken.folder.checkpoint).iteration >= 3
    flag.unlink()
    again = Trainer(build(config), broken.folder)
    again.run()
    assert np.array_equal(again.checkpoint.theta, whole.checkpoint.theta)


def test_closing_ends_workers_that_are_busy() -> None:
    workers, job = prepared("processes", "sleep")
    assert isinstance(workers, Processes)
    for share in range(2):
        workers._post(share, workers._pack(pickle.dumps(("evaluate", (job,)))))
    workers.close()
    assert all(worker.process.poll() is not None for worker in workers.workers)


def test_the_workers_setup_is_refused_in_words_too() -> None:
    config = TrainConfig("fragile:Fragile-v0", workers=2, env=EnvConfig(slots=2))
    spec = inspect(config.env, config.task)
    broken = dataclasses.replace(config, env=EnvConfig(slots=2, kwargs='{"wrong": 1}'))
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
    with make_executor(broken, spec, 3) as workers, pytest.raises(UserError, match="cannot be built .*wrong"):
        workers.evaluate(evaluation_job(np.ones(policy.num_params), 3, 2))
