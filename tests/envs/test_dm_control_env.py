"""DeepMind Control through its own library, where it is installed."""

import numpy as np
import pytest

from twotower.config import EnvConfig
from twotower.envs import SlotSeeds, inspect, make_batch
from twotower.errors import UserError

pytest.importorskip("dm_control")


@pytest.mark.parametrize(("given", "told", "length"), [(None, 20, 20), (50, 50, 20), (5, 5, 5)])
def test_episodes_end_with_the_task_s_time_or_the_given_steps(given: int | None, told: int, length: int) -> None:
    env = EnvConfig(backend="dm_control", kwargs='{"time_limit": 0.2}', max_episode_steps=given)
    spec = inspect(env, "dmc:cartpole-swingup")
    assert spec.max_episode_steps == told
    batch = make_batch(env, spec, SlotSeeds(0, (0,)))
    slot, action = np.zeros(1, np.int32), np.zeros((1, 1))
    for _ in range(2):
        batch.advance(slot, action, np.ones(1, np.bool_), slot)
        steps = [batch.advance(slot, action, np.zeros(1, np.bool_), slot) for _ in range(length)]
        assert [bool(step.dones[0]) for step in steps] == [False] * (length - 1) + [True]
        assert all(0 <= step.rewards[0] <= 1 for step in steps)


def test_it_refuses_in_words() -> None:
    env = EnvConfig(backend="dm_control")
    for bad, env_id, sentence in (
        (env, "dmc:fish-swm", "did you mean 'dmc:fish-swim'?"),
        (env, "dmc:lqr-lqr_2_1", "unbounded actions"),
        (EnvConfig(backend="dm_control", wrappers=("a:B",)), "dmc:fish-swim", "leave out --env.wrappers"),
        (EnvConfig(backend="dm_control", kwargs='{"a": 1}'), "dmc:fish-swim", "cannot be built"),
    ):
        with pytest.raises(UserError) as error:
            inspect(bad, env_id)
        assert sentence in str(error.value)
