"""Ray's workers: the same bits as any others, whatever dies, and clear words where Ray cannot be used."""

import dataclasses
import os
import pickle
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.command import sentence, twotower
from tests.training.runs import new_folder, result, train_on, variant
from twotower.api import merged, resume
from twotower.config import EnvConfig, RayConfig, TrainConfig
from twotower.errors import UserError
from twotower.rollout.executors import make_executor
from twotower.rollout.plan import Job
from twotower.runs import RunFolder, read_metrics
from twotower.training import Trainer, build

RAY: dict[str, Any] = {"executor": "ray", "iterations": 5}


@pytest.fixture
def whole(tmp_path: Path) -> Any:
    """The result of a run that nothing disturbs."""
    folder = new_folder(variant("world", iterations=5), tmp_path / "whole")
    train_on(folder)
    return result(folder)


def disturbed(path: Path, disturb: Any, **options: Any) -> Trainer:
    """A run of five iterations with `disturb(executor)` before its third."""
    folder = new_folder(variant("world", **(RAY | options)), path)
    trainer = Trainer(build(folder.read_config()), folder)
    with make_executor(trainer.experiment.config, trainer.experiment.spec, trainer.num_members) as executor:
        for iteration in range(5):
            if iteration == 2:
                disturb(executor)
            trainer.iterate(executor)
    return trainer


def theta(trainer: Trainer) -> bytes:
    return trainer.checkpoint.theta.tobytes()


def pids(executor: Any) -> list[int]:
    import ray

    return [ray.get(member.actor.pid.remote()) for member in executor.members]


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_actors_do_not_change_a_bit(workers: int, whole: Any, cluster: Any, tmp_path: Path) -> None:
    folder = new_folder(variant("world", workers=workers, **RAY), tmp_path / "ray")
    train_on(folder)
    assert result(folder) == whole
    rows = read_metrics(folder.metrics)
    assert {row["workers"] for row in rows} == {workers}
    assert all(row["bytes_out"] > 0 and row["bytes_back"] > 0 for row in rows)


def test_a_run_may_move_to_ray_and_back(whole: Any, cluster: Any, tmp_path: Path) -> None:
    folder = new_folder(variant("world", iterations=2), tmp_path / "moving")
    train_on(folder)
    resume(folder.path, iterations=4, executor="ray", workers=3, progress=False)
    resume(folder.path, iterations=5, executor="serial", progress=False)
    assert result(RunFolder(folder.path)) == whole


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_actors_that_are_killed_or_stopped_are_replaced(number: Any, whole: Any, cluster: Any, tmp_path: Path) -> None:
    replaced = []

    def disturb(executor: Any) -> None:
        victim = pids(executor)[1]
        os.kill(victim, number)
        evaluate = executor.evaluate

        def counting(job: Job) -> Any:
            returns = evaluate(job)
            replaced.append(executor.account.replaced)
            return returns

        executor.evaluate = counting

    trainer = disturbed(tmp_path / "ray", disturb, workers=2, worker_timeout=8.0)
    assert trainer.checkpoint._asdict()["theta"].tobytes() == whole[0]["theta"]
    assert replaced == [1, 0, 0]


def test_nodes_may_leave_and_join(whole: Any, cluster: Any, tmp_path: Path) -> None:
    shares = []

    def disturb(executor: Any) -> None:
        call = executor.call
        extra = cluster.add_node(num_cpus=1)

        def counting(method: str, job: Job) -> Any:
            if job.iteration == 3:
                cluster.remove_node(extra)
            answers = call(method, job)
            shares.append(len(answers))
            return answers

        executor.call = counting

    trainer = disturbed(tmp_path / "ray", disturb, worker_timeout=60.0)
    assert theta(trainer) == whole[0]["theta"]
    assert shares[0] == 5 and shares[-1] == 4, shares


def test_structured_directions_travel_as_seeds(tmp_path: Path) -> None:
    size = {}
    for directions in ("structured", "orthogonal"):
        for width in (4, 64):
            config = merged(
                variant("world"),
                {
                    "policy": {"kind": "explicit", "hidden": (width,)},
                    "strategy": {"directions": directions, "num_directions": 8},
                },
            )
            trainer = Trainer(build(config), RunFolder(tmp_path))
            strategy = trainer.experiment.strategy
            job = trainer.populate(strategy.propose(strategy.init(strategy.theta)), trainer.checkpoint).job
            size[directions, width] = len(pickle.dumps(("evaluate", (job,)))) - job.proposal.theta.nbytes
    assert abs(size["structured", 64] - size["structured", 4]) < 16
    assert size["orthogonal", 64] - size["orthogonal", 4] >= 8 * 8 * 300


def test_the_command_uses_a_cluster_that_is_there(whole: Any, cluster: Any, tmp_path: Path) -> None:
    new_folder(variant("world", iterations=5), tmp_path / "named")
    arguments = ("--executor", "ray", "--ray.address", cluster.address, "--workers", "2")
    twotower("resume", "named", *arguments, cwd=tmp_path)
    assert result(RunFolder(tmp_path / "named")) == whole
    assert RunFolder(tmp_path / "named").read_config().ray == RayConfig(cluster.address)


def test_an_address_where_nobody_listens_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    new_folder(variant("world"), tmp_path / "run")
    said = sentence("resume", "run", "--executor", "ray", "--ray.address", f"127.0.0.1:{port}", cwd=tmp_path)
    assert said.startswith(f"Nothing answers at 127.0.0.1:{port}") and "ray start --head" in said


@pytest.mark.parametrize("address", ["", "ray://10.0.0.1:10001", "host", "host:", ":6379", "host:0", "host:99999"])
def test_addresses_of_another_form_are_refused(address: str) -> None:
    with pytest.raises(UserError, match="--ray.address must be auto or HOST:PORT"):
        TrainConfig("swimmer", ray=RayConfig(address))


def test_a_missing_ray_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    config = dataclasses.replace(variant_without_check(), executor="ray")
    with pytest.raises(UserError, match=r'pip install "twotower\[ray\]"'):
        build(config)


def variant_without_check() -> TrainConfig:
    return TrainConfig("tests.worlds:World-v0", iterations=1, env=EnvConfig(slots=2))
