"""What an iteration costs beside its episodes: `python -m tests.slow.overhead --out results/cluster/overhead.json`.

Workers that answer at once stand in for those that run episodes, so what is timed is the coordinator's call: message
out, answers back, merged. Seconds are fitted as a + b·workers + c·members + d·megabytes out·workers.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from twotower.config import RayConfig, StrategyConfig, TrainConfig
from twotower.envs.base import BoxActions, EnvSpec
from twotower.es.base import Proposal
from twotower.es.directions import orthogonal, structured
from twotower.files.atomic import write_atomically
from twotower.randomness import Domain
from twotower.rollout.executors import make_executor
from twotower.rollout.plan import Job, population_plan
from twotower.rollout.worker import Returns

SPEC = EnvSpec("none", "none", 4, BoxActions((-1.0,), (1.0,)), 1)
REPETITIONS = 15


class Idle:
    """Answers as a worker whose episodes take no time."""

    def __init__(self, config: TrainConfig, spec: EnvSpec, slots: tuple[int, ...], streams: tuple[int, ...]) -> None:
        self.slots = slots

    def evaluate(self, job: Job) -> Returns:
        """Zeros for every member of the slots."""
        members = np.flatnonzero(np.isin(job.plan.slots, self.slots))
        zeros, none = np.zeros(len(members)), np.zeros((len(members), 0))
        return Returns(members, zeros, zeros, zeros.astype(np.int64), zeros, none, none, none)


def job(members: int, dims: int, kind: str) -> Job:
    """An iteration's work of this size."""
    count = members // 2
    directions = (structured if kind == "structured" else orthogonal)(0, 0, count, dims)
    proposal = Proposal(0, np.zeros(dims), 1.0, dims, directions, np.arange(members) // 2, np.ones(members))
    return Job(Domain.ENVIRONMENT, 0, proposal, population_plan(members, 64, False), np.zeros(64, np.int64))


def measure(executor: str, workers: int, address: str | None) -> list[dict[str, Any]]:
    """Median seconds of a call for jobs of several sizes."""
    config = TrainConfig(
        "none", executor=executor, workers=workers, ray=RayConfig(address), strategy=StrategyConfig(num_directions=4)
    )  # pyright: ignore
    rows = []
    with make_executor(config, SPEC, 64, Idle) as host:  # pyright: ignore[reportArgumentType]
        for members, dims, kind in SIZES:
            work, seconds = job(members, dims, kind), []
            for _ in range(REPETITIONS):
                started = time.perf_counter()
                host.evaluate(work)
                seconds.append(time.perf_counter() - started)
            row = {"executor": executor, "workers": workers, "members": members, "dims": dims, "directions": kind}
            sent = {"bytes_out": host.account.bytes_out, "bytes_back": host.account.bytes_back}
            rows.append(row | sent | {"seconds": float(np.median(seconds[3:]))})
    return rows


SIZES = [
    (64, 100, "structured"), (1024, 100, "structured"), (8192, 100, "structured"), (1024, 10_000, "structured"),
    (64, 1000, "orthogonal"), (512, 1000, "orthogonal"), (512, 5000, "orthogonal"),
]  # fmt: skip


def fit(rows: list[dict[str, Any]]) -> dict[str, float]:
    """The coefficients, by least squares of relative errors, none of them negative."""
    from scipy.optimize import nnls

    table = np.array([[1, r["workers"], r["members"], r["bytes_out"] / 1e6 * r["workers"]] for r in rows])
    seconds = np.array([row["seconds"] for row in rows])
    found, _ = nnls(table / seconds[:, None], np.ones(len(rows)))
    error = np.abs(table @ found / seconds - 1)
    names = ("seconds", "per_worker", "per_member", "per_megabyte_and_worker")
    return dict(zip(names, found.tolist(), strict=True)) | {"median_error": float(np.median(error))}


def main() -> None:
    """Measure, fit, write, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--executors", nargs="+", default=["processes", "ray"])
    parser.add_argument("--address", help="of a Ray cluster; without one a local Ray starts")
    parser.add_argument("--out", type=Path, default=Path("results/cluster/overhead.json"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    for executor in options.executors:
        rows = [row for workers in options.workers for row in measure(executor, workers, options.address)]
        found[executor] = {"fit": fit(rows), "rows": rows}
    write_atomically(options.out, (json.dumps(found, indent=2) + "\n").encode())
    for executor, result in found.items():
        for row in result["rows"]:
            print(executor, {name: row[name] for name in row if name != "executor"})
        print(executor, result["fit"])


if __name__ == "__main__":
    from tests.slow import overhead  # under a name that workers can import `Idle` from

    overhead.main()
