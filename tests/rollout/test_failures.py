"""What breaks under way is said in one sentence that names what reproduces it, and nothing hangs."""

import dataclasses
import os
import re
import signal
import threading
import time
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

MEMBERS = 21


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def prepared(executor: Any, fault: str, workers: int = 2) -> tuple[Any, Job]:
    """An executor, and a job whose faulty members it will meet."""
    config = TrainConfig(
        "fragile:Fragile-v0",
        seed=6,
        executor=executor,
        workers=workers,
        strategy=StrategyConfig(num_directions=10),
        env=EnvConfig(slots=4, kwargs=f'{{"fault": "{fault}"}}'),
    )
    spec = inspect(config.env, config.task)
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
    job = evaluation_job(np.ones(policy.num_params), MEMBERS, 4)
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


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_killed_worker_is_reported_and_nothing_hangs(when: str) -> None:
    workers, job = prepared("processes", "sleep" if when == "during" else "")
    assert isinstance(workers, Processes)
    started = time.monotonic()
    with workers:
        victim = workers.processes[1]

        def kill() -> None:
            os.kill(victim.pid, signal.SIGKILL)

        if when == "during":
            # Both workers are asleep in a step of ten minutes by then.
            others = [process for process in workers.processes if process is not victim]
            threading.Timer(3.0, lambda: [kill(), *(other.kill() for other in others)]).start()
        else:
            kill()
            victim.wait()
        with pytest.raises(UserError, match=r"Worker \d died \(signal 9\). Nothing is lost: resume the run"):
            workers.evaluate(job)
    assert time.monotonic() - started < 30
    assert all(process.poll() is not None for process in workers.processes)


def test_closing_ends_workers_that_are_busy() -> None:
    workers, job = prepared("processes", "sleep")
    assert isinstance(workers, Processes)
    for index in range(2):
        workers.connections[index].send(("evaluate", (job,)))
    workers.close()
    assert all(process.poll() is not None for process in workers.processes)


def test_the_workers_setup_is_refused_in_words_too() -> None:
    config = TrainConfig("fragile:Fragile-v0", workers=2, env=EnvConfig(slots=2))
    spec = inspect(config.env, config.task)
    broken = dataclasses.replace(config, env=EnvConfig(slots=2, kwargs='{"wrong": 1}'))
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
    with make_executor(broken, spec, 3) as workers, pytest.raises(UserError, match="cannot be built .*wrong"):
        workers.evaluate(evaluation_job(np.ones(policy.num_params), 3, 2))
