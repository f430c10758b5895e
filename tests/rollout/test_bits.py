"""The same seed gives the same θ, bit for bit, whoever runs the members."""

import dataclasses
import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twotower.config import CandidatesConfig, EnvConfig, PolicyConfig, StrategyConfig, TrainConfig
from twotower.envs import EnvSpec, inspect
from twotower.es import STRATEGIES
from twotower.es.base import StrategyState
from twotower.policies import make_policy
from twotower.randomness import Domain
from twotower.rollout.executors import Executor, make_executor
from twotower.rollout.plan import Job, evaluation_job, population_plan, slot_streams
from twotower.rollout.worker import Returns, Worker

ITERATIONS = 3


class Divided(Executor):
    """Workers that own the slots processes would own, without the processes."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, num_members: int) -> None:
        streams = slot_streams(num_members, config.env.slots, config.strategy.common_random_numbers)
        count, slots = config.workers or 1, tuple(range(len(streams)))
        self.workers = [Worker(config, spec, slots[index::count], streams[index::count]) for index in range(count)]

    def call(self, method: str, *arguments: Any) -> list[Any]:
        return [getattr(worker, method)(*arguments) for worker in self.workers]

    def close(self) -> None:
        for worker in self.workers:
            worker.close()


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def config_for(
    task: str, env: dict[str, Any] | None = None, candidates: Any = None, strategy: Any = None, policy: Any = None
) -> TrainConfig:
    return TrainConfig(
        task,
        seed=3,
        executor="serial",
        policy=PolicyConfig(**{"latent": 3, **(policy or {})}),
        candidates=CandidatesConfig(**{"count": 40, **(candidates or {})}),
        strategy=StrategyConfig(**{"num_directions": 4, **(strategy or {})}),
        env=EnvConfig(**{"slots": 5, "max_episode_steps": 15, **(env or {})}),
    )


def run(config: TrainConfig, workers: int = 1, make: Any = make_executor) -> tuple[str, list[Returns]]:
    """A digest of θ after three iterations, and all returns: the populations', then an evaluation's."""
    config = dataclasses.replace(config, workers=workers)
    spec = inspect(config.env, config.task)
    policy = make_policy(config.policy, config.candidates, spec.observation_size, spec.actions)
    strategy = STRATEGIES[config.strategy.estimator](
        policy.num_params, config.strategy, state_params=policy.state_params, seed=config.seed
    )
    paired, state, seen = config.strategy.common_random_numbers, strategy.init(strategy.theta), []
    most = 2 * (config.strategy.num_directions or 0) + 1
    episodes = np.zeros(len(slot_streams(most, config.env.slots, paired)), np.int64)
    with make(config, spec, most) as workers_of_this_run:
        for _ in range(ITERATIONS):
            state, returns, episodes = iterate(strategy, state, config, workers_of_this_run, episodes, paired)
            seen.append(returns)
        seen.append(workers_of_this_run.evaluate(evaluation_job(state.theta, 7, config.env.slots)))
    return hashlib.sha256(state.theta.tobytes()).hexdigest(), seen


def iterate(
    strategy: Any, state: StrategyState, config: TrainConfig, executor: Any, episodes: np.ndarray, paired: bool
) -> tuple[StrategyState, Returns, np.ndarray]:
    proposal = strategy.propose(state)
    members = len(proposal.sign)
    if paired:  # whose plan has θ itself as its last member
        proposal = proposal._replace(
            direction_of=np.append(proposal.direction_of, -1), sign=np.append(proposal.sign, 0.0)
        )
    plan = population_plan(len(proposal.sign), config.env.slots, paired)
    returns = executor.evaluate(Job(Domain.ENVIRONMENT, state.iteration, proposal, plan, episodes))
    assert returns.members.tolist() == list(range(len(proposal.sign)))
    state, _ = strategy.update(state, proposal._replace(sign=proposal.sign[:members]), returns.discounted[:members])
    return state, returns, episodes + plan.episodes(len(episodes))


CASES: dict[str, TrainConfig] = {
    "cartpole": config_for("CartPole-v1"),
    "cartpole scalar, sampled": config_for(
        "CartPole-v1", candidates={"encoding": "scalar"}, policy={"choice": "sample", "kernel": "softmax"}
    ),
    "lunarlander": config_for("LunarLanderContinuous-v2", {"max_episode_steps": 60}),
    "hopper": config_for("Hopper-v4"),
    "hopper structured": config_for("Hopper-v4", strategy={"directions": "structured"}),
    "hopper lazy": config_for("Hopper-v4", candidates={"refresh": "iteration"}, strategy={"lazy": 2}),
    "hopper corner": config_for("Hopper-v4", policy={"search": "corner"}, strategy={"directions": "independent"}),
    "hopper common": config_for("Hopper-v4", strategy={"common_random_numbers": True, "discount": 0.9}),
    "hopper refined": config_for("Hopper-v4", policy={"kind": "iot", "hidden": (3,), "refinements": 2}),
    "gymnasium": config_for("MountainCarContinuous-v0", {"backend": "gymnasium"}),
    "gymnasium lunarlander": config_for("LunarLanderContinuous-v3", {"backend": "gymnasium", "max_episode_steps": 60}),
    "rollout": config_for("Hopper-v4", candidates={"refresh": "rollout", "draw": "sobol"}),
    "iteration": config_for("Hopper-v4", candidates={"refresh": "iteration"}),
    "fixed, forward": config_for(
        "Hopper-v4", candidates={"refresh": "fixed"}, strategy={"estimator": "forward_difference"}
    ),
    "explicit": config_for("fragile:Fragile-v0", {"kwargs": '{"discrete": true}'}, policy={"kind": "explicit"}),
}


def needs(case: str) -> None:
    config = CASES[case]
    if config.env.backend == "gymnasium" and "Lunar" in config.task and importlib.util.find_spec("Box2D") is None:
        pytest.skip("Box2D is not installed")
    if config.env.backend == "auto" and ":" not in config.task and importlib.util.find_spec("envpool") is None:
        pytest.skip("EnvPool is not installed")


def same(left: list[Returns], right: list[Returns]) -> bool:
    return all(np.array_equal(a, b) for x, y in zip(left, right, strict=True) for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("case", CASES)
def test_the_division_into_workers_does_not_change_a_bit(case: str) -> None:
    needs(case)
    digest, seen = run(CASES[case])
    for workers in (2, 3):
        again, others = run(CASES[case], workers, Divided)
        assert again == digest and same(seen, others)
    assert len({float(value) for returns in seen for value in returns.lengths * 100 + returns.returns}) > 3


@pytest.mark.parametrize(
    ("case", "workers"), [("cartpole", 1), ("cartpole", 2), ("hopper", 3), ("lunarlander", 2), ("gymnasium", 2)]
)
def test_processes_do_not_change_a_bit(case: str, workers: int) -> None:
    needs(case)
    digest, seen = run(CASES[case])
    again, others = run(dataclasses.replace(CASES[case], executor="processes"), workers)
    assert again == digest and same(seen, others)


@pytest.mark.parametrize("case", ["hopper", "lunarlander"])
def test_a_killed_workers_slots_come_back_where_they_stood(case: str) -> None:
    needs(case)

    def make(*arguments: Any) -> Executor:
        executor = make_executor(*arguments)
        evaluate = executor.evaluate

        def killing(job: Job) -> Returns:
            if job.iteration == 2:
                executor.workers[1].process.kill()  # pyright: ignore[reportAttributeAccessIssue]
            return evaluate(job)

        executor.evaluate = killing
        return executor

    digest, seen = run(CASES[case])
    again, others = run(dataclasses.replace(CASES[case], executor="processes"), 2, make)
    assert again == digest and same(seen, others)


def test_more_workers_than_slots_are_not_started() -> None:
    needs("hopper")
    config = dataclasses.replace(CASES["hopper"], env=EnvConfig(slots=2, max_episode_steps=15))
    _, serial = run(config)
    _, processes = run(dataclasses.replace(config, executor="processes"), 7)
    assert same(serial, processes)
    assert serial[-1].members.tolist() == list(range(7))
    for returns in serial:
        assert (returns.lengths >= 1).all() and (returns.lengths <= 15).all()
        np.testing.assert_array_equal(returns.returns, returns.discounted)  # no discount


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"candidates": CandidatesConfig(40, refresh="rollout")},
        {"candidates": CandidatesConfig(41)},
        {"strategy": StrategyConfig(num_directions=4, common_random_numbers=True)},
        {"strategy": StrategyConfig(num_directions=4, discount=0.9)},
        {"env": EnvConfig(slots=4, max_episode_steps=15)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_what_is_part_of_the_result_changes_it(change: dict[str, Any]) -> None:
    needs("hopper")
    assert run(dataclasses.replace(CASES["hopper"], **change))[0] != run(CASES["hopper"])[0]


def test_discounted_returns_are_discounted() -> None:
    config = config_for("fragile:Fragile-v0", strategy={"discount": 0.5})
    _, seen = run(config)
    _, plain = run(dataclasses.replace(config, strategy=StrategyConfig(num_directions=4)))
    np.testing.assert_array_equal(seen[0].returns, plain[0].returns)
    assert not np.array_equal(seen[0].discounted, seen[0].returns)
    assert (seen[0].lengths == 5).all()


def test_common_random_numbers_start_both_signs_alike() -> None:
    # With σ next to nothing both members are θ: under the same randomness their episodes are the same.
    needs("hopper")
    tiny = {"sigma": 1e-12, "num_directions": 4}
    for case in ("hopper", "gymnasium"):
        config = dataclasses.replace(CASES[case], strategy=StrategyConfig(**tiny, common_random_numbers=True))
        first = run(config)[1][0].returns
        np.testing.assert_array_equal(first[0:8:2], first[1:8:2])
        assert len(set(first)) > 4
        independent = run(dataclasses.replace(config, strategy=StrategyConfig(**tiny)))[1][0].returns
        assert (independent[0:8:2] != independent[1:8:2]).any()
