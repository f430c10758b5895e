"""The Python API: train, load, resume, predict, and policies as Stable-Baselines3 uses them."""

import itertools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

import twotower as tt
from tests import worlds
from twotower import cli
from twotower.api import merged
from twotower.randomness import Domain
from twotower.rollout.plan import episode_seed
from twotower.training import build

WORLD = f"{worlds.__name__}:World-v0"
SMALL: dict[str, Any] = {
    "iterations": 3,
    "executor": "serial",
    "evaluation_episodes": 6,
    "progress": False,
    "candidates": {"count": 50},
    "strategy": {"num_directions": 4},
    "env": {"slots": 4},
}


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def small_run(task: str = WORLD, env: dict[str, Any] | None = None, **options: Any) -> tt.Run:
    """A run of three small iterations."""
    return tt.train(task, **{**SMALL, **options, "env": {"slots": 4, "kwargs": json.dumps(env or {})}})


def untrained(env: dict[str, Any] | None = None, **options: Any) -> tt.TrainedPolicy:
    """The policy with which a small run begins."""
    options = {**SMALL, **options, "env": {"slots": 4, "kwargs": json.dumps(env or {})}}
    options.pop("progress")
    config, spec, _, strategy = build(merged(tt.TrainConfig(WORLD), options))
    return tt.TrainedPolicy(tt.PolicyFile(strategy.theta, config, spec, 0, 0))


def test_a_run_has_a_policy_metrics_and_a_folder() -> None:
    run = small_run(seed=2)
    assert run.stopped_by is None and run.config.seed == 2 and run.config.strategy.num_directions == 4
    assert [row["iteration"] for row in run.metrics] == [1, 2, 3]
    assert {path.name for path in run.folder.iterdir()} >= {
        "config.json", "metrics.jsonl", "checkpoint.safetensors", "policy.safetensors", "curve.png",
    }  # fmt: skip
    evaluation = run.policy.file.evaluation
    assert evaluation is not None and len(evaluation.returns) == 6
    for source in (run.folder, str(run.folder), run.folder / "policy.safetensors"):
        np.testing.assert_array_equal(tt.load(source).theta, run.policy.theta)


def test_the_same_seed_gives_the_same_policy_and_another_seed_another() -> None:
    thetas = [small_run(seed=seed).policy.theta for seed in (1, 1, 2)]
    np.testing.assert_array_equal(thetas[0], thetas[1])
    assert not np.array_equal(thetas[0], thetas[2])


def test_a_larger_budget_extends_a_run_to_the_bits_of_a_longer_one() -> None:
    run = tt.resume(small_run().folder, iterations=5, progress=False)
    longer = small_run(iterations=5)
    np.testing.assert_array_equal(run.policy.theta, longer.policy.theta)
    assert run.policy.file.evaluation == longer.policy.file.evaluation
    assert [row["return"] for row in run.metrics] == [row["return"] for row in longer.metrics]


def test_resuming_within_the_budget_trains_nothing_and_says_so(capsys: Any) -> None:
    run = small_run()
    assert run.trained == 3
    assert cli.resume([str(run.folder), "--iterations", "2"]) == 0
    said = capsys.readouterr().out.splitlines()
    assert "Nothing was trained: 3 iterations and" in said[0] and said[1].startswith("evaluation:")
    assert cli.resume([str(run.folder), "--iterations", "4"]) == 0
    assert "Nothing was trained" not in capsys.readouterr().out


def test_a_budget_of_steps_stops_at_the_first_iteration_that_reaches_it() -> None:
    run = small_run(iterations=None, steps=150)
    steps = [row["steps"] for row in run.metrics]
    assert steps[-1] >= 150 > steps[-2]


def test_options_come_as_dictionaries_configurations_or_numpy_numbers() -> None:
    policy = tt.PolicyConfig(kind="iot", hidden=(3,))
    runs = [small_run(policy=policy), small_run(policy={"kind": "iot", "hidden": [3]}, seed=np.int64(0))]
    assert runs[0].config.policy == runs[1].config.policy == policy
    recipe = tt.recipes.get("hopper")
    run = tt.train(recipe.config("explicit"), **{**SMALL, "iterations": 1})
    assert run.config.policy.kind == "explicit" and run.config.policy.hidden == (3,)
    assert run.config.strategy.sigma == recipe.sigma


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sedd": 1}, "options has an unknown field 'sedd'.*did you mean 'seed'"),
        ({"sigma": 0.1}, r"options has no field 'sigma', but strategy has: give strategy=\{'sigma': 0.1\}"),
        ({"policy": 3}, "options.policy must be a dictionary or a configuration, not 3"),
        ({"policy": {"kind": "ittt"}}, "options.policy.kind must be one of itt, iot, explicit, not 'ittt'"),
        ({"strategy": {"sigma": 0}}, "--strategy.sigma must be a positive number, not 0"),
        ({"strategy": {"sigma": -1.0}}, "--strategy.sigma must be a positive number"),
        ({"strategy": {"sigma": "big"}}, "options.strategy.sigma must be float, not 'big'"),
        ({"strategy": {"num_directions": 0}}, "--strategy.num-directions must be at least 1, not 0"),
        ({"strategy": {"num_directions": -4}}, "--strategy.num-directions must be at least 1, not -4"),
        ({"candidates": {"count": 0}}, "--candidates.count must be at least 1, not 0"),
        ({"candidates": {"count": -1}}, "--candidates.count must be at least 1, not -1"),
        ({"workers": 0}, "--workers must be at least 1, not 0"),
        ({"workers": -2}, "--workers must be at least 1, not -2"),
        ({"iterations": 0}, "--iterations must be at least 1, not 0"),
        ({"iterations": -1}, "--iterations must be at least 1, not -1"),
        ({"iterations": 2.5}, "options.iterations must be int or NoneType, not 2.5"),
        ({"iterations": None}, "A run needs a budget: give --iterations or --steps"),
        ({"steps": 0}, "--steps must be at least 1, not 0"),
        ({"seed": -1}, "--seed must be between 0 and 2.63 - 1, not -1"),
        ({"seed": 2**63}, "--seed must be between 0 and 2.63 - 1"),
        ({"evaluation_episodes": 0}, "--evaluation-episodes must be at least 1, not 0"),
    ],
    ids=str,
)
def test_wrong_options_are_refused_before_a_folder_is_made(options: dict[str, Any], words: str) -> None:
    with pytest.raises(tt.UserError, match=words):
        tt.train("swimmer", **options)
    assert not list(Path().iterdir())


def test_an_unknown_task_suggests_the_nearest() -> None:
    with pytest.raises(tt.UserError, match="did you mean 'swimmer'"):
        tt.train("swimer")


def test_resume_changes_the_budget_but_not_the_experiment() -> None:
    run = small_run()
    before = (run.folder / "config.json").read_bytes()
    with pytest.raises(tt.UserError, match="resume cannot change 'seed': it would be another run"):
        tt.resume(run.folder, seed=3)
    with pytest.raises(tt.UserError, match="--iterations must be at least 1"):
        tt.resume(run.folder, iterations=0)
    assert (run.folder / "config.json").read_bytes() == before


OBSERVATIONS = {
    "box": np.array([0.1, -0.5, 0.9]),
    "matrix": np.array([[0.1, -0.5, 0.9]]),
    "dict": {"b": np.array(0.9), "a": np.array([0.1, -0.5])},
}


def batch_of(observations: list[Any]) -> Any:
    if isinstance(observations[0], dict):
        return {name: np.stack([each[name] for each in observations]) for name in observations[0]}
    return np.stack(observations)


@pytest.mark.parametrize(("observation", "action"), list(itertools.product(("box", "dict"), ("box", "discrete"))))
@pytest.mark.parametrize("refresh", ["step", "rollout", "iteration"])
def test_predict_takes_one_observation_or_a_batch(observation: str, action: str, refresh: Any) -> None:
    env = {"observation": observation, "action": action}
    policy = untrained(env, candidates={"count": 50, "refresh": refresh})
    one, space = OBSERVATIONS[observation], worlds.ACTIONS[action]
    single, state = policy.predict(one)
    assert space.contains(single)
    for count in (1, 3):
        actions, _ = policy.predict(batch_of([one] * count))
        assert actions.shape == (count, *space.shape) and all(space.contains(each) for each in actions)
        np.testing.assert_array_equal(actions[0], single)  # the first row acts as episode 0 does
    again, _ = policy.predict(one)
    np.testing.assert_array_equal(again, single)
    later, state = policy.predict(one, state)
    if refresh == "step" and action == "box":
        assert not np.array_equal(later, single)  # new candidates
    else:
        np.testing.assert_array_equal(later, single)
    _, (episodes, steps) = policy.predict(one, state, episode_start=np.array([True]))
    assert (episodes.tolist(), steps.tolist()) == ([1], [1])


def test_a_batch_acts_as_its_rows_would_alone_whoever_else_asks() -> None:
    policy, other = (untrained(candidates={"count": 50, "refresh": "rollout"}) for _ in range(2))
    observations = np.random.default_rng(0).uniform(-1, 1, (5, 4, 3))
    state = None
    for step, batch in enumerate(observations):
        actions, state = policy.predict(batch, state)
        policy.predict(observations[0, 0])  # somebody else's episode in between
        for row in range(4):
            alone, _ = other.predict(batch[row], (np.array([row]), np.array([step])))
            np.testing.assert_array_equal(alone, actions[row])


@pytest.mark.parametrize(
    "wrong", [np.zeros(2), np.zeros((4, 2)), np.zeros((2, 3, 2)), np.zeros(0), np.zeros((0, 3)), 1.0]
)
def test_predict_refuses_observations_of_another_size(wrong: Any) -> None:
    with pytest.raises(tt.UserError, match="takes observations of 3 numbers, not arrays of shape"):
        untrained().predict(wrong)


class Replayed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts its episodes as our evaluation does, whatever seed the caller asks for."""

    def __init__(self, env: Any, seed: int) -> None:
        super().__init__(env)
        self.run_seed, self.episodes = seed, itertools.count()

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=episode_seed(self.run_seed, Domain.EVALUATION, 0, next(self.episodes)))


@pytest.mark.parametrize(("observation", "action"), list(itertools.product(worlds.OBSERVATIONS, ("box", "discrete"))))
def test_stable_baselines3_measures_the_returns_we_do(observation: str, action: str) -> None:
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    monitor = pytest.importorskip("stable_baselines3.common.monitor")
    env = {"observation": observation, "action": action}
    policy = untrained(env, seed=3)
    world = monitor.Monitor(Replayed(gymnasium.make("World-v0", **env), seed=3))
    returns, _ = evaluation.evaluate_policy(policy, world, n_eval_episodes=6, return_episode_rewards=True)
    np.testing.assert_allclose(returns, policy.evaluate(6).returns, atol=2e-6)  # Monitor rounds to six digits


def test_stable_baselines3_may_run_several_environments_at_once() -> None:
    evaluation = pytest.importorskip("stable_baselines3.common.evaluation")
    env_util = pytest.importorskip("stable_baselines3.common.env_util")
    policy = small_run("cartpole", iterations=8, seed=1).policy
    mean, std = evaluation.evaluate_policy(
        policy, env_util.make_vec_env("CartPole-v1", n_envs=4, seed=0), n_eval_episodes=100
    )
    ours = policy.evaluate(100)
    # Each mean of 100 episodes has this standard error: the difference exceeds four of them once in 15,000 seeds.
    error = np.sqrt((std**2 + ours.std**2) / 100)
    assert abs(mean - ours.mean) < 4 * error + 1e-9


ELSEWHERE = """
import json, sys
import twotower as tt
policy = tt.load(sys.argv[1])
print(json.dumps([policy.file.evaluation.returns, policy.evaluate(len(policy.file.evaluation.returns)).returns]))
"""


@pytest.mark.parametrize("task", [WORLD, "hopper", "lunarlander"])
def test_a_policy_file_reproduces_its_evaluation_in_a_new_process_and_folder(task: str, tmp_path: Path) -> None:
    if task != WORLD:
        pytest.importorskip("envpool")
    run = small_run(task, seed=4, iterations=2)
    elsewhere = tmp_path / "else" / "where"
    elsewhere.mkdir(parents=True)
    (run.folder / "policy.safetensors").rename(elsewhere / "mine.safetensors")
    root = str(Path(__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE, "mine.safetensors"], cwd=elsewhere, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": root, "HOME": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    recorded, again = json.loads(done.stdout)
    assert recorded == again and len(set(recorded)) == 6


@pytest.mark.parametrize("mode", ["NEXT_STEP", "SAME_STEP"])
def test_gymnasium_vector_environments_measure_the_returns_we_do(mode: str) -> None:
    """Rows end at different times; row r's k-th episode is the evaluation's episode r + k n."""
    policy, rows, wanted = untrained(seed=5), 3, 12
    seeds = [[episode_seed(5, Domain.EVALUATION, 0, row + k * rows) for k in range(100)] for row in range(rows)]
    envs = gymnasium.vector.SyncVectorEnv(
        [lambda row=row: Seeded(gymnasium.make("World-v0"), seeds[row]) for row in range(rows)],
        autoreset_mode=gymnasium.vector.AutoresetMode[mode],
    )
    observations, _ = envs.reset()
    state, starts, over = None, np.ones(rows, bool), np.zeros(rows, bool)
    totals, returns = np.zeros(rows), [[] for _ in range(rows)]
    while min(map(len, returns)) < wanted // rows:
        actions, state = policy.predict(observations, state, episode_start=starts)
        starts = over
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        over = terminated | truncated
        if mode == "SAME_STEP":
            starts = over
        totals += rewards
        for row in np.flatnonzero(over):
            returns[row].append(float(totals[row]))
            totals[row] = 0
    measured = [returns[episode % rows][episode // rows] for episode in range(wanted)]
    np.testing.assert_allclose(measured, policy.evaluate(wanted).returns, rtol=1e-6)


class Seeded(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Starts its episodes from these seeds, in their order."""

    def __init__(self, env: Any, seeds: list[int]) -> None:
        super().__init__(env)
        self.seeds = iter(seeds)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return super().reset(seed=next(self.seeds))
