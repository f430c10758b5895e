"""Run folders are made once, found again, and trained in by one process at a time."""

import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from twotower.config import TrainConfig
from twotower.envs.base import DiscreteActions, EnvSpec
from twotower.errors import UserError
from twotower.files.atomic import _ASIDE
from twotower.runs import PolicyFile, RunFolder, load_policy_source

CONFIG = TrainConfig("swimmer", seed=3)


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def named(name: str) -> RunFolder:
    return RunFolder.create(TrainConfig("swimmer", run_dir=name))


def test_default_names_never_collide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "strftime", lambda form: "20240506-070809")
    made = [str(RunFolder.create(CONFIG).path) for _ in range(3)]
    assert made == [f"runs/swimmer-20240506-070809{suffix}" for suffix in ("", "-2", "-3")]


@pytest.mark.parametrize("task", ["module:Env-v0", "dmc:cartpole-swingup", "ALE/Pong-v5", "../../up", "..", "x" * 400])
def test_any_task_gives_one_folder_under_runs(task: str) -> None:
    folder = RunFolder.create(TrainConfig(task)).path
    assert folder.parent == Path("runs") and folder.resolve().parent == Path("runs").resolve()
    assert folder.is_dir()


def test_config_comes_back() -> None:
    folder = RunFolder.create(CONFIG)
    assert RunFolder.open(folder.path).read_config() == CONFIG
    assert RunFolder.open(str(folder.path)).read_config() == CONFIG


def test_a_named_folder_may_exist_but_not_hold_a_run() -> None:
    Path("a/b").mkdir(parents=True)
    Path("a/b/notes.txt").touch()
    assert named("a/b").path == Path("a/b")
    with pytest.raises(UserError, match="already holds a run: resume it with: twotower resume a/b"):
        named("a/b")
    Path("a/b/config.json").unlink()
    Path("a/b/checkpoint.safetensors").touch()
    with pytest.raises(UserError, match="already holds a run"):
        named("a/b")


def test_places_where_no_folder_can_be_made() -> None:
    Path("file").touch()
    with pytest.raises(UserError, match="file: File exists"):
        named("file")
    with pytest.raises(UserError, match="Not a directory"):
        named("file/deeper")
    Path("runs").symlink_to("nowhere")
    with pytest.raises(UserError, match="File exists"):
        RunFolder.create(CONFIG)


def test_a_full_disk_is_named() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with pytest.raises(UserError, match="config.json: File too large"):
            named("here")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert named("here").read_config().task == "swimmer"


def test_opening_what_is_no_run() -> None:
    Path("file").touch()
    Path("empty").mkdir()
    with pytest.raises(UserError, match="no run folder missing"):
        RunFolder.open("missing")
    for path in ("file", "empty"):
        with pytest.raises(UserError, match="not a run folder"):
            RunFolder.open(path)
    with pytest.raises(UserError, match="too long"):
        RunFolder.open("x" * 300)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"{", "not JSON"),
        (b"\xff\xfe\xff", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "must be an object"),
        (b'{"task": "x", "sede": 1}', "did you mean 'seed'"),
        (b"{}", "incomplete"),
    ],
)
def test_a_damaged_config_is_refused_in_words(text: bytes, words: str) -> None:
    folder = named("run")
    folder.config.write_bytes(text)
    with pytest.raises(UserError, match=words):
        folder.read_config()


def policy() -> PolicyFile:
    return PolicyFile(np.ones(2), CONFIG, EnvSpec("CartPole-v1", "gymnasium", 4, DiscreteActions(2), 500), 1, 2)


def test_a_policy_comes_from_a_folder_or_a_file() -> None:
    folder = named("run")
    with pytest.raises(UserError, match="no policy yet.*twotower resume run"):
        load_policy_source("run")
    policy().save(folder.policy)
    for source in ("run", folder.policy, str(folder.policy)):
        assert load_policy_source(source).steps == 2
    with pytest.raises(UserError, match="No such file"):
        load_policy_source("missing")
    with pytest.raises(UserError, match="too long"):
        load_policy_source("x" * 300)
    Path("empty").mkdir()
    with pytest.raises(UserError, match="not a run folder"):
        load_policy_source("empty")


HOLDER = """
import os, sys, time
from pathlib import Path
from twotower.runs import RunFolder
with RunFolder(Path(sys.argv[1])).locked():
    child = os.fork()
    if child == 0:
        time.sleep(20)
        os._exit(0)
    print(child, flush=True)
    time.sleep(20)
"""


def test_two_processes_never_train_in_one_folder_and_a_killed_one_lets_go() -> None:
    folder = named("run")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, "run"], stdout=subprocess.PIPE, text=True, env=environment
    ) as holder:
        assert holder.stdout is not None
        orphan = int(holder.stdout.readline())
        try:
            with pytest.raises(UserError, match="Another process is training in run"), folder.locked():
                pass
            leftover = folder.path / _ASIDE.format("left")
            leftover.touch()
            holder.send_signal(signal.SIGKILL)
            holder.wait()
            with folder.locked():  # though the killed trainer's worker still lives
                os.kill(orphan, 0)
                assert not leftover.exists()
        finally:
            os.kill(orphan, signal.SIGKILL)
    with folder.locked():
        pass
