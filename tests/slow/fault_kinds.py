"""The faults of tests/slow/faults.py, each as a function that strikes a small run and sees it through."""

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.training.runs import new_folder, result, train_on, variant
from twotower.errors import UserError
from twotower.rollout.executors import Executor, make_executor
from twotower.runs import Checkpoint, PolicyFile, RunFolder, read_metrics
from twotower.training import Trainer, build

ITERATIONS = 60
NOBODY = 65534


class Outcome(NamedTuple):
    """What became of a run that faults struck."""

    injections: int
    survived: int
    equal: int
    iterations_lost: int = 0
    seconds_lost: float = 0.0
    what: str = ""


@cache
def whole() -> Any:
    """The result of the undisturbed run."""
    import tempfile

    with tempfile.TemporaryDirectory() as path:
        folder = new_folder(variant("world", iterations=ITERATIONS), Path(path) / "whole")
        train_on(folder)
        return result(folder)


def begin(path: Path, **options: Any) -> RunFolder:
    """A run that is about to suffer."""
    whole()  # and with it, all kernels are compiled
    return new_folder(variant("world", iterations=ITERATIONS, **options), path / "run")


def judge(folder: RunFolder, injections: int, lost: list[tuple[int, float]], what: str = "") -> Outcome:
    """How the run ended, after the next command brought it to its end."""
    try:
        train(folder)
        equal = result(folder) == whole()
        survived = True
    except UserError as error:
        survived, equal, what = False, False, str(error)
    iterations, seconds = (max((loss[index] for loss in lost), default=0) for index in (0, 1))
    return Outcome(injections, injections * survived, injections * equal, int(iterations), float(seconds), what)


def train(folder: RunFolder) -> None:
    """What `twotower resume` does, without its start-up."""
    with folder.locked():
        train_on(folder)


def loss(folder: RunFolder) -> tuple[int, float]:
    """The iterations, and their seconds, that are logged but in no checkpoint."""
    done = Checkpoint.load(folder.checkpoint).iteration if folder.checkpoint.exists() else 0
    rows = [row for row in read_metrics(folder.metrics) if row["iteration"] > done]
    return len(rows), sum(row["seconds_ask"] + row["seconds_rollouts"] + row["seconds_tell"] for row in rows)


def forked(work: Callable[[], None], said: Path) -> int:
    """A process that works: exit code 0, or 2 with its sentence in a file."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        work()
        code = 0
    except UserError as error:
        said.write_text(str(error))
        code = 2
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        os._exit(code)


def ended(pid: int) -> int:
    """The exit code, or minus the signal."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def often(random: np.random.Generator) -> dict[str, float]:
    """Checkpoints after every iteration, or now and then."""
    return {"checkpoint_seconds": float(random.choice([0.0, 0.05, 1e6]))}


def coordinator_killed(path: Path, random: np.random.Generator) -> Outcome:
    """SIGKILL at random instants of a command that trains."""
    folder, kills, lost = begin(path, **often(random)), 0, []
    for _ in range(5):
        pid = forked(lambda: train(folder), path / "said")
        time.sleep(random.uniform(0, 0.3))
        os.kill(pid, signal.SIGKILL)
        kills += ended(pid) == -signal.SIGKILL
        lost.append(loss(folder))
    return judge(folder, kills, lost)


def killed_while_writing(path: Path, random: np.random.Generator) -> Outcome:
    """SIGKILL inside the writing of a checkpoint or policy: in the middle of its bytes, before and after the rename."""
    folder, kills, lost = begin(path, checkpoint_seconds=0.0), 0, []
    for _ in range(5):
        call, count = str(random.choice(["fsync", "replace", "replaced"])), int(random.integers(1, 40))
        pid = forked(lambda call=call, count=count: die_in(folder, call, count), path / "said")
        kills += ended(pid) == -signal.SIGKILL
        lost.append(loss(folder))
    return judge(folder, kills, lost)


def die_in(folder: RunFolder, call: str, count: int) -> None:
    """Train until the file system has been called so often, then die there."""
    left = [count]
    original = {"fsync": os.fsync, "replace": os.replace, "replaced": os.replace}[call]

    def deadly(*arguments: Any) -> None:
        left[0] -= 1
        if call == "replaced":
            original(*arguments)
        if not left[0]:
            if call == "fsync":  # what a crash leaves of bytes that were not flushed
                with contextlib.suppress(OSError):
                    os.ftruncate(arguments[0], os.fstat(arguments[0]).st_size - 7) if count % 2 else None
            os.kill(os.getpid(), signal.SIGKILL)
        if call != "replaced":
            original(*arguments)

    setattr(os, call.removesuffix("d"), deadly)
    train(folder)


def strike_workers(folder: RunFolder, strike: Callable[[Any], None], times: int, pause: Callable[[], float]) -> Outcome:
    """A run in which workers are struck so often; where five die at the same work, the next command goes on."""
    trainer = Trainer(build(folder.read_config()), folder)
    config, spec, _, _ = trainer.experiment
    working: list[Executor] = []
    struck = stops = 0

    def finish() -> None:
        nonlocal stops
        while not trainer.finished:
            with make_executor(config, spec, trainer.num_members) as executor:
                working[:] = [executor]
                try:
                    while not trainer.finished:
                        trainer.iterate(executor)
                        time.sleep(0.01)
                except UserError:
                    stops += 1
                working.clear()

    thread = threading.Thread(target=finish)  # not the strikes: Ray starts nodes from the main thread alone
    thread.start()
    while struck < times and not trainer.finished:
        time.sleep(pause())
        if working and not trainer.finished:
            with contextlib.suppress(ProcessLookupError):
                strike(working[0])
                struck += 1
    thread.join()
    equal = trainer.checkpoint.theta.tobytes() == whole()[0]["theta"]
    return Outcome(struck, struck, struck * equal, what=f"{stops} stops with a sentence" if stops else "")


def worker_killed(path: Path, random: np.random.Generator) -> Outcome:
    """SIGKILL of one of two workers."""
    folder = begin(path, executor="processes", workers=2)

    def strike(executor: Any) -> None:
        os.kill(executor.workers[int(random.integers(2))].process.pid, signal.SIGKILL)

    return strike_workers(folder, strike, 4, lambda: random.uniform(0.1, 2.0))


def worker_stopped(path: Path, random: np.random.Generator) -> Outcome:
    """SIGSTOP of one of two workers, for longer than --worker-timeout."""
    folder = begin(path, executor="processes", workers=2, worker_timeout=12.0)

    def strike(executor: Any) -> None:
        os.kill(executor.workers[int(random.integers(2))].process.pid, signal.SIGSTOP)

    return strike_workers(folder, strike, 2, lambda: random.uniform(0.1, 2.0))


@cache
def ray_cluster() -> Any:
    """A node of two cores, for as long as this process lives."""
    # A machine that is busy with faults answers slowly; its nodes are not dead.
    patience = {"RAY_health_check_failure_threshold": "30", "RAY_worker_niceness": "0"}
    os.environ |= patience | {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_MODE": "disabled"}
    import ray
    from ray.cluster_utils import Cluster

    nodes = Cluster()
    started(nodes, include_dashboard=False)
    ray.init(nodes.address, log_to_driver=False, logging_level=40)
    return nodes


def started(nodes: Any, **arguments: Any) -> Any:
    """A new node of two cores; Ray gives a busy machine no more than 30 seconds to start one, so try again."""
    for _ in range(10):
        with contextlib.suppress(Exception):
            return nodes.add_node(num_cpus=2, **arguments)
    raise RuntimeError("no node could be started")


def actor_killed(path: Path, random: np.random.Generator) -> Outcome:
    """`ray.kill` of one of two actors."""
    ray_cluster()
    import ray

    folder = begin(path, executor="ray", workers=2)

    def strike(executor: Any) -> None:
        if executor.members:
            ray.kill(executor.members[int(random.integers(len(executor.members)))].actor)

    return strike_workers(folder, strike, 4, lambda: random.uniform(0.5, 3.0))


def node_lost(path: Path, random: np.random.Generator) -> Outcome:
    """A node is removed while its actors work, and another one joins."""
    nodes = ray_cluster()
    folder = begin(path, executor="ray")
    extra = [started(nodes)]

    def strike(executor: Any) -> None:
        nodes.remove_node(extra.pop(), allow_graceful=False)
        time.sleep(random.uniform(0, 1))
        extra.append(started(nodes))

    try:
        return strike_workers(folder, strike, 2, lambda: random.uniform(0.5, 3.0))
    finally:
        nodes.remove_node(extra.pop())


def disk_full(path: Path, random: np.random.Generator) -> Outcome:
    """A file system of 256 KiB fills up at a random iteration, or between a checkpoint and its policy file."""
    path = path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(path)], check=True)
    try:
        # Checkpoints rarely, so that the log may be the first to find no room; or all the time.
        folder = begin(path, checkpoint_seconds=float(random.choice([0.0, 1e6])))
        moment, room = int(random.integers(1, ITERATIONS - 2)), int(random.integers(0, 3))
        late = random.random() < 1 / 3
        filler = path / "filler"
        trainer = Trainer(build(folder.read_config()), folder)
        policy_file = trainer.policy_file

        def fill(pages: int) -> None:
            filler.write_bytes(b"\0" * 4096 * max(os.statvfs(path).f_bavail - pages, 0))

        def report(row: dict[str, Any]) -> None:
            if row["iteration"] == moment and not late:
                fill(room)

        def policy_file_without_room() -> PolicyFile:
            if trainer.checkpoint.iteration >= moment:
                fill(0)
            return policy_file()

        if late:
            trainer.policy_file = policy_file_without_room
        said = "there was room enough"
        try:
            with folder.locked():
                trainer.run(report)
        except UserError as error:
            said = f"while writing {str(error).split(': ')[0].split('/')[-1]}"
        lost = [loss(folder)]
        filler.unlink()
        return judge(folder, 1, lost, said)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def read_only(path: Path, random: np.random.Generator) -> Outcome:
    """The run's folder loses its write permission while another user than root trains in it."""
    folder, moment = begin(path, checkpoint_seconds=0.0), int(random.integers(1, ITERATIONS - 2))
    path.chmod(0o755)
    for file in (folder.path, *folder.path.iterdir()):
        shutil.chown(file, NOBODY, NOBODY)

    def work() -> None:
        os.setgid(NOBODY)
        os.setuid(NOBODY)

        def report(row: dict[str, Any]) -> None:
            if row["iteration"] == moment:
                folder.path.chmod(0o555)

        with folder.locked():
            Trainer(build(folder.read_config()), folder).run(report)

    refused = path / "said"
    refused.touch()
    refused.chmod(0o666)
    code = ended(forked(work, refused))
    folder.path.chmod(0o755)
    lost = [loss(folder)]
    outcome = judge(folder, 1, lost, refused.read_text().split(": ")[-1])
    return outcome if code == 2 else outcome._replace(survived=0)


def clock_jumps(path: Path, random: np.random.Generator) -> Outcome:
    """The date jumps by years at random iterations, and the monotonic clock by hours, as after a suspension."""
    folder = begin(path, executor="processes", workers=2, worker_timeout=30.0)
    real, monotonic = time.time, time.monotonic
    offset = {"time": 0.0, "monotonic": 0.0}
    time.time = lambda: real() + offset["time"]
    time.monotonic = lambda: monotonic() + offset["monotonic"]
    jumps = {int(at) for at in random.integers(1, ITERATIONS, 8)}

    def report(row: dict[str, Any]) -> None:
        if row["iteration"] in jumps:
            offset["time"] = float(random.uniform(-1e9, 1e9))
            offset["monotonic"] += float(random.uniform(0, 1e5))

    try:
        Trainer(build(folder.read_config()), folder).run(report)
    finally:
        time.time, time.monotonic = real, monotonic
    kept = sum(row["workers_replaced"] for row in read_metrics(folder.metrics)) == 0
    outcome = judge(folder, len(jumps), [])
    return outcome if kept else outcome._replace(survived=0)


def two_at_once(path: Path, random: np.random.Generator) -> Outcome:
    """A second process is started in the folder, is refused, and leaves the first alone."""
    folder, refused = begin(path, checkpoint_seconds=0.0), 0
    first = forked(lambda: train(folder), path / "said")
    time.sleep(random.uniform(0.05, 0.2))
    second = forked(lambda: train(folder), path / "refused")
    code = ended(second)
    if code == 2 and "Another process is training" in (path / "refused").read_text():
        refused = 1
    done = ended(first) == 0
    outcome = judge(folder, 1, [])
    return outcome if refused and done else outcome._replace(survived=0)


def stale_lock(path: Path, random: np.random.Generator) -> Outcome:
    """The lock file of a killed process, and what it was writing, lie in the folder."""
    folder = begin(path, checkpoint_seconds=0.0)
    pid = forked(lambda: train(folder), path / "said")
    time.sleep(random.uniform(0.05, 0.2))
    os.kill(pid, signal.SIGKILL)
    ended(pid)
    (folder.path / ".lock").touch()
    (folder.path / ".twotower-0123456789abcdef.tmp").write_bytes(b"torn")
    lost = loss(folder)
    outcome = judge(folder, 1, [lost])
    clean = not list(folder.path.glob(".twotower-*.tmp"))
    return outcome if clean else outcome._replace(survived=0)


KINDS: dict[str, Callable[[Path, np.random.Generator], Outcome]] = {
    "the coordinator is killed at a random instant": coordinator_killed,
    "the coordinator is killed while it writes a checkpoint": killed_while_writing,
    "the disk fills up": disk_full,
    "the run folder becomes read-only": read_only,
    "two processes in one run folder": two_at_once,
    "a stale lock": stale_lock,
    "the clock jumps": clock_jumps,
    "a worker is killed (SIGKILL)": worker_killed,
    "a worker is stopped (SIGSTOP)": worker_stopped,
    "a Ray actor is killed": actor_killed,
    "a Ray node leaves, another joins": node_lost,
}
