"""EnvPool and Gymnasium (or dm_control) mean the same task by the same name."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from twotower.config import EnvConfig
from twotower.envs import EnvBatch, EnvSpec, SlotSeeds, inspect, make_batch
from twotower.randomness import generator

pytest.importorskip("envpool")
SLOT, GO, STOP = np.zeros(1, np.int32), np.ones(1, np.bool_), np.zeros(1, np.bool_)


def set_mujoco(environment: Any, observation: np.ndarray) -> None:
    """The observation leaves out x, on which nothing depends; a start's velocities lie within Hopper's clipping."""
    positions = environment.model.nq
    environment.set_state(np.append(0.0, observation[: positions - 1]), observation[positions - 1 :])


def set_classic(environment: Any, observation: np.ndarray) -> None:
    environment.state = observation.copy()


def balance(observation: np.ndarray, step: int) -> np.ndarray:
    return np.array([int(observation[2] + observation[3] > 0)])


def swing(observation: np.ndarray, step: int) -> np.ndarray:
    return np.array([2 if observation[1] >= 0 else 0])


def random(size: int) -> Callable[[np.ndarray, int], np.ndarray]:
    # Gymnasium's spaces round actions to float32, EnvPool's MuJoCo tasks do not: draw some that both take exactly.
    return lambda observation, step: generator(0, step).uniform(-1, 1, (1, size)).astype(np.float32).astype(np.float64)


# How to set a start, what to do, steps in a row, tolerance. EnvPool's MuJoCo is 3.6, and a start's x, on which nothing
# depends, is unknown: sums round differently, which contacts amplify. Its rewards and classic tasks are float32.
TASKS = {
    "Hopper-v4": (set_mujoco, random(3), 70, 1e-7),
    "HalfCheetah-v4": (set_mujoco, random(6), 55, 1e-3),
    "CartPole-v1": (set_classic, balance, 70, 1e-4),
    "MountainCar-v0": (set_classic, swing, 70, 1e-4),
}


def one(backend: Any, env_id: str, limit: int | None = None) -> tuple[EnvSpec, EnvBatch]:
    env = EnvConfig(backend=backend, max_episode_steps=limit)
    spec = inspect(env, env_id)
    batch = make_batch(env, spec, SlotSeeds(1, (0,)))
    batch.begin(0, np.zeros(1, np.int64))
    return spec, batch


@pytest.mark.parametrize("env_id", TASKS)
def test_envpool_and_gymnasium_step_alike(env_id: str) -> None:
    if env_id in ("Hopper-v4", "HalfCheetah-v4"):
        for package in ("mujoco", "imageio"):  # Gymnasium's MuJoCo environments import both
            pytest.importorskip(package)
    set_state, policy, limit, tolerance = TASKS[env_id]
    (pool_spec, pool), (spec, batch) = one("envpool", env_id, limit), one("gymnasium", env_id, limit)
    assert (pool_spec.observation_size, pool_spec.actions) == (spec.observation_size, spec.actions)
    assert pool_spec.max_episode_steps == spec.max_episode_steps == limit
    compared = 0
    while compared < 140:
        action = policy(np.zeros(spec.observation_size), 0)
        observation = pool.advance(SLOT, action, GO, SLOT).observations[0]
        batch.advance(SLOT, action, GO, SLOT)
        set_state(batch.environments[0].unwrapped, observation)  # pyright: ignore[reportAttributeAccessIssue]
        done = False
        while not done:
            action = policy(observation, compared)
            ours, theirs = pool.advance(SLOT, action, STOP, SLOT), batch.advance(SLOT, action, STOP, SLOT)
            np.testing.assert_allclose(ours.observations, theirs.observations, rtol=0, atol=tolerance)
            np.testing.assert_allclose(ours.rewards, theirs.rewards, rtol=0, atol=tolerance + 1e-6)
            assert ours.dones == theirs.dones
            observation, done, compared = ours.observations[0], bool(ours.dones[0]), compared + 1


def test_limits_are_the_task_s_own() -> None:
    for env_id, limit in (("CartPole-v1", 500), ("MountainCar-v0", 200), ("Acrobot-v1", 500)):
        for backend in ("envpool", "gymnasium"):
            assert one(backend, env_id)[0].max_episode_steps == limit


@pytest.mark.parametrize("env_id", ["dmc:fish-swim", "dmc:hopper-stand", "dmc:swimmer-swimmer6", "dmc:walker-walk"])
def test_envpool_and_dm_control_lay_observations_out_alike(env_id: str) -> None:
    pytest.importorskip("dm_control")
    from dm_control import suite  # pyright: ignore[reportMissingImports]
    from envpool import make_spec

    from twotower.envs.envpool_env import pool_id

    for backend in ("envpool", "dm_control"):
        assert one(backend, env_id)[0].max_episode_steps == 1000
    assert one("envpool", env_id)[0].actions == one("dm_control", env_id)[0].actions
    theirs: Any = suite.load(*env_id.removeprefix("dmc:").split("-")).observation_spec()
    space: Any = make_spec(pool_id(env_id)).observation_space
    assert {name: part.shape for name, part in theirs.items()} == {name: part.shape for name, part in space.items()}


@pytest.mark.parametrize("backend", ["envpool", "dm_control"])
def test_fish_observes_its_uprightness_between_target_and_velocity(backend: str) -> None:
    if backend == "dm_control":
        pytest.importorskip("dm_control")
    _, batch = one(backend, "dmc:fish-swim")
    start = batch.advance(SLOT, np.zeros((1, 5)), GO, SLOT).observations[0]
    # Alphabetical: joint_angles (7), target (3), upright (1), velocity (13).
    assert -1 <= start[10] <= 1
    assert not start[11:].any() and start[:11].all()
