"""The `ars` preset against stable-baselines3-contrib's ARS: the same hyperparameters, the same learning curves."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats

from twotower.api import merged, train
from twotower.recipes import task_config
from twotower.recipes.presets import ars

pytest.importorskip("envpool")
pytest.importorskip("sb3_contrib")

SEEDS = 8
CASES: dict[str, tuple[int, dict[str, Any]]] = {
    "CartPole-v1": (20, {"num_directions": 4, "top": 4, "alpha": 0.1, "nu": 0.1}),
    "Hopper-v4": (40, {"num_directions": 8, "top": 4, "alpha": 0.02, "nu": 0.05, "bonus": 1.0}),
    "Pendulum-v1": (25, {"num_directions": 8, "top": 8, "alpha": 0.05, "nu": 0.1}),
}


def ours(task: str, iterations: int, choices: dict[str, Any], seed: int, path: Path) -> np.ndarray:
    """Mean return of the population, iteration by iteration."""
    config = merged(task_config(task, preset="ars"), {"strategy": {"survival_bonus": 0.0, **ars(**choices)}})
    options = {"iterations": iterations, "seed": seed, "executor": "serial", "evaluation_episodes": 1}
    run = train(config, progress=False, run_dir=str(path / f"{task}-{seed}"), **options)
    # The population of the metrics has θ itself in it; the peer's does not.
    return np.array([(row["population_mean"] * row["episodes"] - row["return"]) / (row["episodes"] - 1)
                     for row in run.metrics])  # fmt: skip


def theirs(task: str, iterations: int, choices: dict[str, Any], seed: int) -> np.ndarray:
    """The same of the peer, whose policy ends in tanh, too, if asked."""
    import gymnasium
    from sb3_contrib import ARS
    from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

    found: list[float] = []

    class Recorded(ARS):
        def evaluate_candidates(self, *arguments: Any, **named: Any) -> Any:
            returns = super().evaluate_candidates(*arguments, **named)
            found.append(float(np.mean([episode["r"] for episode in self.ep_info_buffer or []])))
            if len(found) == iterations:
                self.num_timesteps = 10**9  # enough
            return returns

    env = VecNormalize(DummyVecEnv([lambda: gymnasium.make(task)]), norm_reward=False)
    env.seed(seed)
    squash = {"squash_output": True} if task != "CartPole-v1" else {}
    model = Recorded(
        "LinearPolicy", env, seed=seed, n_delta=choices["num_directions"], n_top=choices["top"],
        learning_rate=choices["alpha"], delta_std=choices["nu"], alive_bonus_offset=-choices.get("bonus", 0.0),
        policy_kwargs=squash,
    )  # fmt: skip
    model.learn(10**9 - 1, log_interval=10**9)
    return np.array(found)


def curves(task: str, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Learning curves of both, (seeds, iterations) each."""
    iterations, choices = CASES[task]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the peer's
        peer = np.stack([theirs(task, iterations, choices, seed) for seed in range(SEEDS)])
    return np.stack([ours(task, iterations, choices, seed, path) for seed in range(SEEDS)]), peer


@pytest.mark.slow
@pytest.mark.parametrize("task", CASES)
def test_learning_curves_are_the_peers(task: str, tmp_path: Path) -> None:
    """Thirds of both curves differ by no more than seeds do; the chance that fresh seeds fail is one in a hundred."""
    mine, peer = curves(task, tmp_path)
    assert mine.shape == peer.shape
    thirds = [np.stack([part.mean(axis=1) for part in np.array_split(curve, 3, axis=1)]) for curve in (mine, peer)]
    p = scipy.stats.ttest_ind(*thirds, axis=1, equal_var=False).pvalue
    print(task, "ours", thirds[0].mean(axis=1), "peer", thirds[1].mean(axis=1), "p", p)
    assert p.min() > 0.01 / 3
    for third in thirds:
        assert third[-1].mean() > third[0].mean() + third[0].std()  # both learn: not equal for standing still


if __name__ == "__main__":
    import sys

    for case in sys.argv[2:] or CASES:
        for name, curve in zip(("ours", "peer"), curves(case, Path(sys.argv[1])), strict=True):
            at = [round(float(part.mean()), 1) for part in np.array_split(curve, 5, axis=1)]
            print(case, name, at, "seeds' ends", np.round(curve[:, -3:].mean(axis=1), 1).tolist(), flush=True)
