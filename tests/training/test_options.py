"""Strategy options in whole runs: each changes the result, and none breaks the same bits."""

import dataclasses
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from twotower.config import CandidatesConfig, EnvConfig, PolicyConfig, StrategyConfig, TrainConfig
from twotower.errors import UserError
from twotower.rollout.base import Account
from twotower.rollout.executors import make_executor
from twotower.rollout.plan import Job
from twotower.rollout.worker import Returns
from twotower.runs import Checkpoint, RunFolder
from twotower.training import TrainedPolicy, Trainer, build
from twotower.training.trainer import Population

pytestmark = pytest.mark.skipif(importlib.util.find_spec("envpool") is None, reason="EnvPool is not installed")


def config_for(policy: dict[str, Any] | None = None, **strategy: Any) -> TrainConfig:
    return TrainConfig(
        "Hopper-v4",
        seed=3,
        iterations=4,
        executor="serial",
        evaluation_episodes=3,
        policy=PolicyConfig(latent=3, **(policy or {})),
        candidates=CandidatesConfig(40),
        strategy=StrategyConfig(num_directions=4, **strategy),
        env=EnvConfig(slots=5, max_episode_steps=15),
    )


def trained(config: TrainConfig, path: Path) -> Trainer:
    trainer = Trainer(build(config), RunFolder(path))
    path.mkdir(exist_ok=True)
    trainer.run()
    return trainer


def bits(checkpoint: Checkpoint) -> dict[str, bytes]:
    """All of a checkpoint but the clock."""
    left_out = {"seconds": 0.0, "metrics_bytes": 0}
    return {name: np.asarray(part).tobytes() for name, part in checkpoint._replace(**left_out)._asdict().items()}


PLAIN = config_for()
EACH = {
    "normalise_observations": config_for({"normalise_observations": True}),
    **{
        next(iter(choice)): config_for(**choice)
        for choice in (
            {"survival_bonus": 1.0},
            {"episodes_per_member": 2},
            {"shaping": "ranks"},
            {"top_directions": 2},
            {"scale_returns": True},
            {"weight_decay": 0.1},
            {"initial_scale": 0.5},
            {"initial_state_scale": 0.0},
            {"sigma_decay": 0.9},
            {"step_decay": 0.9},
            {"decay_steps": 100, "sigma_decay": 0.9, "step_decay": 0.8},
            {"common_random_numbers": True},
            {"directions": "structured"},
            {"discount": 0.9},
            {"lazy": 2},
        )
    },
    "refresh": dataclasses.replace(PLAIN, candidates=CandidatesConfig(40, refresh="rollout")),
    "count_growth": dataclasses.replace(PLAIN, candidates=CandidatesConfig(40, count_growth=1.1)),
    **{rule: config_for(step_rule=rule) for rule in ("momentum", "adam", "clipup")},
}
TOGETHER = {
    "ars": config_for({"normalise_observations": True}, scale_returns=True, top_directions=2, survival_bonus=1.0),
    "adam": config_for(
        {"normalise_observations": True},
        step_rule="adam", shaping="ranks", common_random_numbers=True, episodes_per_member=3, weight_decay=0.1,
    ),
    "clipup, lazy": config_for(step_rule="clipup", lazy=2, shaping="ranks", directions="structured"),
    "growing": dataclasses.replace(PLAIN, candidates=CandidatesConfig(10, count_growth=2.0, final_count=70)),
    "forward momentum": config_for(
        {"normalise_observations": True},
        estimator="forward_difference", step_rule="momentum", scale_returns=True, episodes_per_member=2,
        top_directions=3,
    ),
}  # fmt: skip
TOGETHER["everything"] = dataclasses.replace(
    config_for(
        {"normalise_observations": True},
        directions="structured", sigma_decay=0.95, step_decay=0.9, common_random_numbers=True, discount=0.99,
        survival_bonus=1.0, episodes_per_member=2, shaping="ranks", top_directions=3, scale_returns=True,
        step_rule="clipup", weight_decay=0.1, initial_scale=0.5, initial_state_scale=0.5, lazy=2,
    ),
    candidates=CandidatesConfig(20, count_growth=1.5, final_count=50, refresh="rollout"),
)  # fmt: skip


@pytest.mark.parametrize("option", EACH)
def test_each_option_changes_the_result(option: str, tmp_path: Path) -> None:
    plain = trained(PLAIN, tmp_path / "plain").checkpoint
    assert not np.array_equal(trained(EACH[option], tmp_path / "option").checkpoint.theta, plain.theta)


@pytest.mark.parametrize("case", TOGETHER)
def test_workers_and_interruptions_do_not_change_a_bit(case: str, tmp_path: Path) -> None:
    whole = trained(TOGETHER[case], tmp_path / "whole")
    divided = dataclasses.replace(TOGETHER[case], executor="processes", workers=2)
    trained(dataclasses.replace(TOGETHER[case], iterations=1), tmp_path / "parts")
    parts = trained(divided, tmp_path / "parts")
    assert bits(parts.checkpoint) == bits(whole.checkpoint)
    assert TrainedPolicy(parts.policy_file()).evaluate(3) == TrainedPolicy(whole.policy_file()).evaluate(3)


def populate(config: TrainConfig, path: Path) -> tuple[Trainer, Population]:
    trainer = Trainer(build(config), RunFolder(path))
    strategy = trainer.experiment.strategy
    return trainer, trainer.populate(strategy.propose(strategy.init(strategy.theta)), trainer.checkpoint)


def test_the_survival_bonus_is_left_out_of_what_trains_alone(tmp_path: Path) -> None:
    config = config_for(survival_bonus=0.75)
    trainer, population = populate(config, tmp_path)
    with make_executor(config, trainer.experiment.spec, trainer.num_members) as executor:
        results = executor.evaluate(population.job)
    np.testing.assert_allclose(results.discounted, results.returns - 0.75 * results.lengths, atol=1e-9)
    assert results.deviations.shape == (len(results.members), 0)


def test_members_play_their_episodes_on_streams_of_their_own(tmp_path: Path) -> None:
    for choices in ({}, {"common_random_numbers": True}):
        trainer, population = populate(config_for(episodes_per_member=3, **choices), tmp_path)
        plan, proposal = population.job.plan, population.job.proposal
        assert len(plan.streams) == 8 * 3 + 1 == trainer.num_members and population.centre == 24
        for member in range(8):
            episodes = np.arange(member, 24, 8)
            assert len(set(plan.streams[episodes])) == 3
            assert len({proposal.member(episode).tobytes() for episode in episodes}) == 1
        assert (plan.streams[0:24:2] == plan.streams[1:24:2]).all() == bool(choices)


class Answers:
    """An executor that gives answers made before."""

    def __init__(self, results: Returns) -> None:
        self.results, self.account = results, Account(0.0, (0.0,), 0)

    def evaluate(self, job: Job) -> Returns:
        return self.results


def test_a_member_is_worth_the_mean_of_its_episodes(tmp_path: Path) -> None:
    once, _ = populate(PLAIN, tmp_path)
    twice, _ = populate(config_for(episodes_per_member=2), tmp_path)
    nothing = np.zeros((17, 0))
    returns = np.random.default_rng(0).normal(size=17)
    means = np.append((returns[:8] + returns[8:16]) / 2, 0.0)
    for trainer, values in ((once, means), (twice, returns)):
        count = len(values)
        parts = (
            np.arange(count),
            values,
            values,
            np.ones(count, int),
            values,
            *(nothing[:count],) * 3,
            nothing[:count, None],
        )
        trainer.iterate(Answers(Returns(*parts)))  # pyright: ignore[reportArgumentType]
    np.testing.assert_array_equal(once.checkpoint.theta, twice.checkpoint.theta)
    assert not np.array_equal(once.checkpoint.theta, once.experiment.strategy.theta)


def test_observations_that_are_not_finite_are_refused(tmp_path: Path) -> None:
    trainer, _ = populate(EACH["normalise_observations"], tmp_path)
    before, sums = trainer.checkpoint, np.zeros((9, 11))
    squares = sums.copy()
    squares[4, 2] = np.inf
    values = np.zeros(9)
    results = Returns(np.arange(9), values, values, np.ones(9, int), values, sums, squares, sums, sums[:, None, :0])
    with pytest.raises(UserError, match="Member 4 of iteration 0 saw observations that are not finite in Hopper-v4"):
        trainer.iterate(Answers(results))  # pyright: ignore[reportArgumentType]
    assert trainer.checkpoint is before


def test_the_policy_file_acts_on_observations_as_the_environment_gives_them(tmp_path: Path) -> None:
    trainer = trained(EACH["normalise_observations"], tmp_path)
    file = trainer.policy_file()
    assert file.normaliser is not None and trainer.checkpoint.observations == trainer.checkpoint.steps
    again = TrainedPolicy(type(file).load(trainer.folder.policy))
    assert again.evaluate(3) == TrainedPolicy(file).evaluate(3)
    scrambled = dataclasses.replace(file, normaliser=file.normaliser._replace(mean=file.normaliser.mean + 1))
    assert TrainedPolicy(scrambled).evaluate(3) != again.evaluate(3)
    plain = dataclasses.replace(
        file, normaliser=None, config=dataclasses.replace(file.config, policy=PolicyConfig(latent=3))
    )
    raw = np.linspace(-1, 1, 11)
    action, _ = again.predict(raw)
    np.testing.assert_array_equal(action, TrainedPolicy(plain).predict(file.normaliser(raw))[0])
    assert not np.array_equal(action, TrainedPolicy(plain).predict(raw)[0])


def test_a_checkpoint_of_another_step_rule_is_refused(tmp_path: Path) -> None:
    trained(EACH["adam"], tmp_path)
    with pytest.raises(UserError, match="belongs to another configuration"):
        Trainer(build(PLAIN), RunFolder(tmp_path))
    with pytest.raises(UserError, match="belongs to another configuration"):
        Trainer(build(EACH["normalise_observations"]), RunFolder(tmp_path))


def test_a_policy_file_offers_as_many_candidates_as_its_iteration_would(tmp_path: Path) -> None:
    trainer = trained(TOGETHER["growing"], tmp_path)
    assert trainer.policy_file().config.candidates == CandidatesConfig(70, final_count=70)
    before = dataclasses.replace(TOGETHER["growing"], iterations=2)
    assert trained(before, tmp_path / "before").policy_file().config.candidates.count == 40
