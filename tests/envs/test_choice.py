"""Which library runs an id, and what is said when none does."""

import subprocess
import sys

import pytest

from twotower.config import EnvConfig
from twotower.envs import BACKENDS, BoxActions, EnvSpec, SlotSeeds, inspect, make_batch
from twotower.envs.envpool_env import pool_id
from twotower.errors import UserError

pytest.importorskip("envpool")


def without(monkeypatch: pytest.MonkeyPatch, *packages: str) -> None:
    for package in packages:
        for module in [name for name in sys.modules if name.split(".")[0] == package]:
            monkeypatch.delitem(sys.modules, module)
        monkeypatch.setitem(sys.modules, package, None)


def test_auto_takes_envpool_where_it_has_the_plain_id() -> None:
    assert inspect(EnvConfig(), "Swimmer-v4") == EnvSpec(
        "Swimmer-v4", "envpool", 8, BoxActions((-1.0, -1.0), (1.0, 1.0)), 1000
    )
    fish = inspect(EnvConfig(max_episode_steps=7), "dmc:fish-swim")
    assert (fish.backend, fish.observation_size, fish.max_episode_steps) == ("envpool", 24, 7)


def test_auto_takes_gymnasium_for_everything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    wrapped = EnvConfig(wrappers=("gymnasium.wrappers:ClipReward",), kwargs='{"sutton_barto_reward": true}')
    for env in (EnvConfig(kwargs='{"sutton_barto_reward": true}'), EnvConfig(backend="gymnasium")):
        assert inspect(env, "CartPole-v1").backend == "gymnasium"
    with pytest.raises(UserError, match="The wrapper gymnasium.wrappers:ClipReward cannot wrap"):
        inspect(wrapped, "CartPole-v1")
    without(monkeypatch, "envpool")
    assert inspect(EnvConfig(), "CartPole-v1").backend == "gymnasium"


@pytest.mark.parametrize(
    ("task", "name"),
    [
        ("dmc:fish-swim", "FishSwim-v1"),
        ("dmc:swimmer-swimmer6", "SwimmerSwimmer6-v1"),
        ("dmc:ball_in_cup-catch", "BallInCupCatch-v1"),
        ("dmc:humanoid_CMU-run", "HumanoidCMURun-v1"),
        ("dmc:point_mass-easy", "PointMassEasy-v1"),
        ("Ant-v5", "Ant-v5"),
    ],
)
def test_control_suite_tasks_have_names_in_envpool(task: str, name: str) -> None:
    assert pool_id(task) == name
    assert BACKENDS["envpool"].has(task)


def test_a_control_suite_id_never_means_another_family_s_task() -> None:
    assert BACKENDS["envpool"].has("CartPole-v1") and pool_id("dmc:cart_pole") == "CartPole-v1"
    assert not BACKENDS["envpool"].has("dmc:cart_pole")


def test_limitless_tasks_have_no_limit() -> None:
    assert inspect(EnvConfig(backend="envpool"), "Catch-v0").max_episode_steps is None


@pytest.mark.parametrize(
    ("env", "env_id", "sentence"),
    [
        (EnvConfig(), "HalfChetah-v4", "in EnvPool and Gymnasium (did you mean 'HalfCheetah-v4'?)."),
        (EnvConfig(), "swimer", "in EnvPool and Gymnasium (did you mean 'swimmer'?)."),
        (EnvConfig(backend="envpool"), "FishSwin-v1", "in EnvPool (did you mean 'FishSwim-v1'?)."),
        (EnvConfig(backend="gymnasium"), "Acrobt-v1", "in Gymnasium (did you mean 'Acrobot-v1'?)."),
        (EnvConfig(backend="gymnasium"), "dmc:fish-swim", "No environment is called 'dmc:fish-swim' in Gymnasium"),
        (EnvConfig(), "nowhere:Task-v0", "nowhere:Task-v0 names the module nowhere, which cannot be imported"),
        (EnvConfig(), "", "No environment is called ''"),
        (EnvConfig(), "FrozenLake-v1", "FrozenLake-v1 observes a Discrete space"),
        (EnvConfig(), "dmc:lqr-lqr_2_1", "dmc:lqr-lqr_2_1 has unbounded actions"),
        (EnvConfig(backend="envpool", wrappers=("a:B",)), "Hopper-v4", "EnvPool takes no wrappers"),
        (EnvConfig(backend="envpool", kwargs='{"a": 1}'), "Hopper-v4", "EnvPool cannot build Hopper-v4: "),
        (EnvConfig(backend="gymnasium"), "Hopper-v3", "Hopper-v3 cannot be built: The mujoco v2 and v3"),
    ],
)
def test_what_cannot_run_is_told_in_one_sentence(env: EnvConfig, env_id: str, sentence: str) -> None:
    with pytest.raises(UserError) as error:
        inspect(env, env_id, known=["swimmer", "hopper"])
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("env", "env_id", "package", "extra"),
    [
        (EnvConfig(backend="envpool"), "Hopper-v4", "envpool", "envpool"),
        (EnvConfig(backend="dm_control"), "dmc:fish-swim", "dm_control", "dmc"),
        (EnvConfig(backend="gymnasium"), "Hopper-v4", "mujoco", "mujoco"),
        (EnvConfig(backend="gymnasium"), "LunarLanderContinuous-v3", "Box2D", "box2d"),
    ],
)
def test_a_missing_package_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, env: EnvConfig, env_id: str, package: str, extra: str
) -> None:
    without(monkeypatch, package)
    for module in [name for name in sys.modules if name.startswith(("gymnasium.envs.mujoco", "gymnasium.envs.box2d"))]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(UserError, match=rf'^{env_id} needs the package .*; run: pip install "twotower\[{extra}\]"$'):
        inspect(env, env_id)


def test_a_batch_whose_library_is_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = inspect(EnvConfig(), "Hopper-v4")
    without(monkeypatch, "envpool")
    with pytest.raises(UserError, match=r'pip install "twotower\[envpool\]"'):
        make_batch(EnvConfig(), spec, SlotSeeds(0, (0,)))


def test_a_mistyped_control_suite_task_is_corrected_though_dm_control_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(monkeypatch, "dm_control")
    with pytest.raises(UserError) as error:
        inspect(EnvConfig(), "dmc:fish-swm")
    assert "did you mean 'FishSwim-v1'?" in str(error.value) and "twotower[dmc]" in str(error.value)


def test_importing_the_room_imports_no_library() -> None:
    script = (
        "import sys, twotower.envs\n"
        "print([name for name in ('gymnasium', 'envpool', 'mujoco', 'dm_control') if name in sys.modules])"
    )
    output = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert output.strip() == "[]"
