"""Videos show the episode that was asked for, and say in one sentence why there is none."""

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest

from twotower.analysis.video import captioned, record_video
from twotower.config import EnvConfig
from twotower.envs import inspect
from twotower.envs.base import DiscreteActions, EnvSpec
from twotower.envs.drawing import twin
from twotower.envs.gymnasium_env import make_one
from twotower.envs.opengl import follow
from twotower.errors import UserError
from twotower.es.normaliser import Normaliser
from twotower.recipes import get, names
from twotower.runs import PolicyFile
from twotower.training import TrainedPolicy, build, evaluate_policy, task_config

ROOT = Path(__file__).parents[2]


def untrained(task: str, backend: str = "auto", **env: object) -> PolicyFile:
    """A policy as it is before training."""
    config = task_config(task)
    config = dataclasses.replace(config, env=EnvConfig(backend=backend, **env))  # pyright: ignore[reportArgumentType]
    experiment = build(config)
    return PolicyFile(experiment.strategy.theta, config, experiment.spec, 0, 0)


def read(path: Path) -> tuple[tuple[int, int], float, np.ndarray]:
    """A video's (width, height), frames a second, and frames (frames, height, width, 3)."""
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-i", path, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=True)
    stream = next(line for line in done.stderr.decode().splitlines() if "Video:" in line)
    width, height = map(int, re.search(r", (\d+)x(\d+)", stream).groups())  # pyright: ignore[reportOptionalMemberAccess]
    rate = float(re.search(r"([\d.]+) fps", stream)[1])  # pyright: ignore[reportOptionalSubscript]
    return (width, height), rate, np.frombuffer(done.stdout, np.uint8).reshape(-1, height, width, 3)


@pytest.mark.parametrize(("suffix", "every"), [(".mp4", 1), (".gif", 2)])
def test_a_video_shows_an_episode_of_the_evaluation(tmp_path: Path, suffix: str, every: int) -> None:
    policy = untrained("cartpole", "gymnasium")
    evaluation = evaluate_policy(policy, 3)
    video = record_video(TrainedPolicy(policy), tmp_path / f"a{suffix}", episode=2)
    assert video.total == evaluation.returns[2] and not video.cut
    _, rate, frames = read(video.path)
    assert rate == 50 / every  # CartPole's own rate, halved for the gif
    assert len(frames) == video.steps // every + 1 + (video.steps % every > 0)
    strip = frames.shape[1] - 400 * frames.shape[2] // 600
    assert frames[:, :strip].std() > 5  # the caption
    assert np.abs(frames[-1, strip:].astype(int) - frames[0, strip:]).max() > 50  # the pole moved
    assert np.abs(frames[-1, :strip].astype(int) - frames[0, :strip]).max() > 50  # and so did the return
    assert list(tmp_path.iterdir()) == [video.path]


def test_a_long_episode_is_cut(tmp_path: Path) -> None:
    video = record_video(TrainedPolicy(untrained("acrobot")), tmp_path / "a.mp4", max_seconds=2.0)
    assert (video.steps, video.total, video.cut) == (30, -30.0, True)
    assert len(read(video.path)[2]) == 31


@pytest.mark.parametrize(
    ("env_id", "found"),
    [
        ("Swimmer-v4", ("gymnasium", "Swimmer-v4")),
        ("LunarLanderContinuous-v2", ("gymnasium", "LunarLanderContinuous-v3")),
        ("SwimmerSwimmer15-v1", ("dm_control", "dmc:swimmer-swimmer15")),
        ("dmc:ball_in_cup-catch", ("dm_control", "dmc:ball_in_cup-catch")),
    ],
)
def test_tasks_of_envpool_have_twins(env_id: str, found: tuple[str, str]) -> None:
    assert twin(inspect(EnvConfig(backend="envpool"), env_id)) == found


@pytest.mark.parametrize("name", names())
def test_every_recipe_has_a_twin_with_its_spaces(name: str) -> None:
    spec = inspect(EnvConfig(), get(name).env_id)
    if spec.backend == "envpool":
        backend, env_id = twin(spec)
        drawn = inspect(EnvConfig(backend=backend), env_id)  # pyright: ignore[reportArgumentType]
        assert dataclasses.replace(drawn, env_id=spec.env_id, backend="envpool") == spec


def test_a_task_that_only_envpool_has_is_refused() -> None:
    with pytest.raises(UserError, match="Pong-v5 ran in EnvPool, which draws no pictures"):
        twin(EnvSpec("Pong-v5", "envpool", 4, DiscreteActions(2), None))


def film(policy: PolicyFile, folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`twotower video` in a process of its own, where mujoco has not been imported yet and there is no screen."""
    policy.save(folder / "policy.safetensors")
    command = [sys.executable, "-m", "twotower.cli", "video", str(folder / "policy.safetensors"), *arguments]
    surrounding = {name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY")}
    surrounding |= environment
    return subprocess.run(command, cwd=ROOT, env=surrounding, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(("task", "size"), [("swimmer", (480, 512)), ("fish-swim", (480, 512))])
def test_mujoco_is_drawn_without_a_screen(tmp_path: Path, task: str, size: tuple[int, int]) -> None:
    done = film(untrained(task), tmp_path, "--seconds", "0.2")
    if "apt-get install" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0 and done.stderr == "", done.stderr
    assert "first 5 steps" in done.stdout and "trained in envpool" in done.stdout
    shape, _, frames = read(tmp_path / "video.mp4")
    assert shape == size and len(frames) == 6
    assert frames[-1, 32:].std() > 20


def test_opengl_that_does_not_work_is_one_sentence(tmp_path: Path) -> None:
    done = film(untrained("swimmer"), tmp_path, MUJOCO_GL="glfw")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("twotower: MuJoCo draws Swimmer-v4 with OpenGL (glfw)")
    assert "apt-get install libegl1" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(("env_id", "follows"), [("HalfCheetah-v4", True), ("Hopper-v4", False)])
def test_the_camera_follows_the_body(env_id: str, follows: bool) -> None:
    environment = make_one(EnvConfig(), env_id, render_mode="rgb_array").unwrapped
    follow(environment)
    camera = environment.mujoco_renderer.camera_id  # Hopper's free camera follows by itself
    assert camera == (environment.model.camera("track").id if follows else -1)
    environment.close()


def test_captions_are_legible_and_sizes_even() -> None:
    framed = captioned(np.full((33, 51, 3), 200, np.uint8), "left", "right")
    assert framed.shape == (34 + 20, 52, 3)
    assert framed[:20].max() > 200 and framed[20:53, :51].min() == 200


@pytest.mark.filterwarnings("ignore:.*render_mode")  # Gymnasium says so, too
def test_an_environment_that_draws_nothing_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "envs"))
    policy = untrained("examples:Echo-v0")
    with pytest.raises(UserError, match=r"Echo-v0 cannot be drawn .* rgb_array"):
        record_video(TrainedPolicy(policy), tmp_path / "a.mp4")
    assert list(tmp_path.iterdir()) == []


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = untrained("cartpole")
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "pygame", None)
        with pytest.raises(UserError, match=r'needs pygame; run: pip install "twotower\[video\]"'):
            record_video(TrainedPolicy(policy), tmp_path / "a.mp4")
    monkeypatch.setitem(sys.modules, "imageio_ffmpeg", None)
    with pytest.raises(UserError, match=r'imageio-ffmpeg and Pillow; run: pip install "twotower\[video\]"'):
        record_video(TrainedPolicy(policy), tmp_path / "a.mp4")


def test_places_that_cannot_be_written_are_refused(tmp_path: Path) -> None:
    policy = untrained("cartpole")
    with pytest.raises(UserError, match=r"mp4 or a \.gif file, not 'a.avi'"):
        record_video(TrainedPolicy(policy), tmp_path / "a.avi")
    with pytest.raises(UserError, match="Cannot write .*missing/a.mp4: No such file"):
        record_video(TrainedPolicy(policy), tmp_path / "missing" / "a.mp4")


@pytest.mark.parametrize("program", ["/bin/false", "/bin/true"])
def test_a_failing_ffmpeg_keeps_the_old_video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
    (tmp_path / "a.mp4").write_bytes(b"old")
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", program)
    with pytest.raises(UserError, match="Cannot write .*a.mp4: ffmpeg said"):
        record_video(TrainedPolicy(untrained("cartpole")), tmp_path / "a.mp4")
    assert (tmp_path / "a.mp4").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_the_best_parameters_are_in_the_run_folder_only(tmp_path: Path) -> None:
    done = film(untrained("cartpole"), tmp_path, "--parameters", "best")
    assert done.returncode == 2 and "name its run's folder" in done.stderr


def test_normalised_observations_are_normalised_in_a_video(tmp_path: Path) -> None:
    policy = untrained("cartpole", "gymnasium")
    config = dataclasses.replace(
        policy.config, policy=dataclasses.replace(policy.config.policy, normalise_observations=True)
    )
    normaliser = Normaliser(np.array([9.0, 0, 9, 0]), np.ones(4))
    policy = dataclasses.replace(policy, config=config, normaliser=normaliser)
    video = record_video(TrainedPolicy(policy), tmp_path / "a.mp4")
    assert video.total == evaluate_policy(policy, 1).returns[0]
    assert video.total != evaluate_policy(untrained("cartpole", "gymnasium"), 1).returns[0]


def test_the_users_arguments_reach_the_drawn_environment(tmp_path: Path) -> None:
    policy = untrained("Pendulum-v1", "gymnasium", kwargs='{"g": 5}', max_episode_steps=4)
    video = record_video(TrainedPolicy(policy), tmp_path / "a.mp4")
    assert video.total == evaluate_policy(policy, 1).returns[0]
