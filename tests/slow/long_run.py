"""An hour of training under fire: `python -m tests.slow.long_run FOLDER --out results/faults/long_run.json`.

Two runs of Hopper go on side by side, each with one worker: one is undisturbed, the other loses its worker or its
coordinator every 30 seconds on average. Both begin with a policy that hops, for untrained ones have short episodes. The
undisturbed one waits where it is ahead. At the end both are brought to the same iteration and compared.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from tests.command import ENVIRONMENT
from tests.training.runs import result
from twotower.api import merged
from twotower.files.atomic import write_atomically
from twotower.randomness import generator
from twotower.runs import RunFolder, read_metrics
from twotower.training import task_config

FAULTS = {"worker killed": 0.6, "worker stopped": 0.15, "coordinator killed": 0.25}
OPTIONS: dict[str, Any] = {
    "iterations": 10**6, "seed": 11, "workers": 1, "worker_timeout": 90.0, "plain": True, "evaluation_episodes": 1,
}  # fmt: skip
YOUNG = {"coordinator": 1.0, "worker": 3.0}  # seconds of processor time in which a process still starts
WINDOW = 600.0


class Training:
    """A command that trains in a folder, started again whenever it has ended."""

    def __init__(self, path: Path, *arguments: str) -> None:
        self.folder = RunFolder(path)
        if not self.folder.config.exists():
            path.mkdir(parents=True, exist_ok=True)
            self.folder.write_config(merged(task_config("hopper"), OPTIONS | {"run_dir": str(path)}))
        self.ended = 0
        self.start(*arguments)

    def start(self, *arguments: str) -> None:
        """Go on from the last checkpoint."""
        command = [sys.executable, "-m", "twotower.cli", "resume", str(self.folder.path), *arguments]
        self.log = open(self.folder.path / "log.txt", "ab")
        self.process = subprocess.Popen(command, env=ENVIRONMENT, stdout=self.log, stderr=self.log)

    def revive(self) -> None:
        """Start again if the command has ended."""
        if self.process.poll() is not None:
            self.ended += self.process.returncode != -signal.SIGKILL
            self.start()

    def stop(self) -> int:
        """End with a checkpoint; the iteration of it."""
        self.process.send_signal(signal.SIGCONT)
        while self.process.poll() is None:
            self.process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        return self.iterations()

    def iterations(self) -> int:
        """How many are done."""
        return len(read_metrics(self.folder.metrics))

    def workers(self) -> list[int]:
        """The coordinator's children."""
        with contextlib.suppress(OSError):  # it may have just ended
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
            return [int(child) for child in children.split()]
        return []


def resident(pid: int) -> tuple[float, float] | None:
    """A process's processor time in seconds, and its resident bytes."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        facts = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        spent = (int(facts[11]) + int(facts[12])) / os.sysconf("SC_CLK_TCK")
        return spent, int(facts[21]) * os.sysconf("SC_PAGE_SIZE")
    return None


def inject(training: Training, random: np.random.Generator) -> str | None:
    """One fault; None if there was nobody to hit."""
    kind = str(random.choice(list(FAULTS), p=list(FAULTS.values())))
    workers = training.workers()
    if kind == "coordinator killed":
        training.process.kill()
        training.process.wait()
        return kind
    if not workers:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(random.choice(workers)), signal.SIGKILL if kind == "worker killed" else signal.SIGSTOP)
        return kind
    return None


def under_fire(path: Path, seconds: float, every: float, seed: int, out: Path) -> dict[str, Any]:
    """Train both for so long, with faults in one; what happened so far is on disk every ten seconds."""
    state_file = path / "state.json"
    state: dict[str, Any] = {"seconds": 0.0, "faults": {}, "next": every, "samples": [], "ended": 0}
    if state_file.exists():
        state = json.loads(state_file.read_text())
    random = generator(seed, int(state["seconds"]))
    trainings = {name: Training(path / name, "--iterations", str(10**6)) for name in ("disturbed", "undisturbed")}
    disturbed, quiet = trainings.values()
    faults, ended, before, saved = Counter(state["faults"]), state["ended"], time.monotonic(), 0.0
    while state["seconds"] < seconds:
        time.sleep(0.5)
        now = time.monotonic()
        state["seconds"] += min(now - before, 2.0)  # not what was spent stopped
        before = now
        for training in trainings.values():
            training.revive()
        if state["seconds"] >= state["next"]:
            kind = inject(disturbed, random)
            faults.update([kind] if kind else [])
            state["next"] = state["seconds"] + random.exponential(every)
        if now - saved >= 10:
            saved = now
            ahead = quiet.iterations() > disturbed.iterations()
            quiet.process.send_signal(signal.SIGSTOP if ahead else signal.SIGCONT)
            for name, training in trainings.items():
                state["samples"] += [(state["seconds"], f"{name} {role}", size) for role, size in samples(training)]
            state |= {"faults": dict(faults), "ended": ended + disturbed.ended + quiet.ended}
            write_atomically(state_file, json.dumps(state).encode())
            write_atomically(out, (json.dumps(summary(state), indent=2) + "\n").encode())
    return finish(state, disturbed, quiet)


def prepare(path: Path, iterations: int) -> None:
    """Two folders of one run, so many iterations long."""
    learnt = path / "learnt"
    if not (path / "disturbed").exists():
        assert Training(learnt, "--iterations", str(iterations)).process.wait() == 0
        for name in ("undisturbed", "disturbed"):
            shutil.copytree(learnt, path / name)


def samples(training: Training) -> list[tuple[str, float]]:
    """The resident bytes of the coordinator and its worker, once they have grown up."""
    roles = {training.process.pid: "coordinator"} | dict.fromkeys(training.workers(), "worker")
    found = {pid: resident(pid) for pid in roles}
    return [(roles[pid], fact[1]) for pid, fact in found.items() if fact and fact[0] > YOUNG[roles[pid]]]


def summary(state: dict[str, Any]) -> dict[str, Any]:
    """What happened, and how memory stood in the first and last ten minutes."""
    memory = {}
    for name in sorted({name for _, name, _ in state["samples"]}):
        mine = [(at, value) for at, named, value in state["samples"] if named == name]
        first = [value for at, value in mine if at <= WINDOW]
        last = [value for at, value in mine if at > state["seconds"] - WINDOW]
        if first and last:
            middle, end = float(np.median(first)), float(np.median(last))
            memory[name] = {"first_MB": middle / 1e6, "last_MB": end / 1e6, "change": end / middle - 1}
    return {
        "minutes": state["seconds"] / 60,
        "faults": sum(state["faults"].values()),
        "by_kind": state["faults"],
        "ended_by_itself": state["ended"],
        "memory": memory,
    }


def finish(state: dict[str, Any], disturbed: Training, quiet: Training) -> dict[str, Any]:
    """Bring both runs to the same iteration and compare all that does not measure time."""
    goal = max(disturbed.stop(), quiet.stop())
    for training in (disturbed, quiet):
        training.start("--iterations", str(goal))
        assert training.process.wait() == 0
    (left, left_rows), (right, right_rows) = result(disturbed.folder), result(quiet.folder)
    return summary(state) | {
        "iterations": goal,
        "steps": left["steps"],
        "bits_equal": left == right and left_rows == right_rows,
    }


def main() -> None:
    """Run, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--every", type=float, default=30.0, help="mean seconds between faults")
    parser.add_argument("--learnt", type=int, default=40, help="iterations before the first fault")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/faults/long_run.json"))
    options = parser.parse_args()
    for folder in (options.folder, options.out.parent):
        folder.mkdir(parents=True, exist_ok=True)
    prepare(options.folder, options.learnt)
    found = under_fire(options.folder, options.seconds, options.every, options.seed, options.out)
    write_atomically(options.out, (json.dumps(found, indent=2) + "\n").encode())
    print(json.dumps(found))
    sys.exit(not found["bits_equal"])


if __name__ == "__main__":
    main()
