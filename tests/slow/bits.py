"""θ wherever workers live: `python -m tests.slow.bits` makes the table in docs/cluster.md.

Every task and refresh is trained five iterations by one process, by two, by 1, 2 and 4 actors on a Ray node, and, where
there was time for it, by one actor on each of two Ray nodes.
"""

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.training.runs import SMALL, new_folder, result, train_on
from twotower.api import merged
from twotower.files.atomic import write_atomically
from twotower.training import task_config

ITERATIONS = 5
REFRESHES: dict[str, dict[str, Any]] = {
    "step": {"candidates": {"refresh": "step"}},
    "step, lazy": {"candidates": {"refresh": "step"}, "strategy": {"lazy": 2}},
    "iteration": {"candidates": {"refresh": "iteration"}},
    "iteration, lazy": {"candidates": {"refresh": "iteration"}, "strategy": {"lazy": 2}},
}
TASKS: dict[str, dict[str, Any]] = {
    "swimmer": {},
    "hopper": {},
    "lunarlander": {},
    "fish-swim": {},
    "Pendulum-v1": {"env": {"backend": "gymnasium"}},
}
WHO = {
    "serial": ("serial", 1),
    "2 processes": ("processes", 2),
    "Ray, 1 actor": ("ray", 1),
    "Ray, 2 actors": ("ray", 2),
    "Ray, 4 actors": ("ray", 4),
}
TWO_NODES = {"serial": ("serial", 1), "Ray, 2 nodes": ("ray", 2)}
HEADINGS = ("task", *REFRESHES)


def outcomes(task: str, refresh: str, path: Path, who: dict[str, tuple[str, int]] = WHO) -> dict[str, tuple[str, bool]]:
    """θ's digest by who trained it, and whether everything else that was recorded is what `serial` recorded."""
    config = merged(merged(merged(task_config(task), SMALL), TASKS[task]), REFRESHES[refresh])
    found: dict[str, tuple[str, bool]] = {}
    first: Any = None
    for name, (executor, workers) in who.items():
        options = {"iterations": ITERATIONS, "executor": executor, "workers": workers, "env": {"max_episode_steps": 50}}
        folder = new_folder(merged(config, options), path / name)
        train_on(folder)
        state, rows = result(folder)
        assert len(rows) == ITERATIONS
        first = first or (state, rows)
        found[name] = hashlib.sha256(state["theta"]).hexdigest()[:12], (state, rows) == first
    return found


def is_equal(row: dict[str, Any]) -> bool:
    """Whether all agreed, on θ and on all else."""
    return len({digest for digest, _ in row["who"].values()}) == 1 and all(same for _, same in row["who"].values())


def table(rows: list[dict[str, Any]]) -> str:
    """The first digits of θ's digest where all agreed, as Markdown."""
    words = {
        (row["task"], row["refresh"]): f"`{row['who']['serial'][0][:8]}`" if is_equal(row) else "differs"
        for row in rows
    }
    lines = [HEADINGS, ("---",) * len(HEADINGS)]
    lines += [(task, *(words.get((task, refresh), "") for refresh in REFRESHES)) for task in TASKS]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    """Train what is not recorded yet, write after every row, print the table."""
    from tests.slow.fault_kinds import ray_cluster, started

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, choices=[1, 2], default=1, help="of the Ray cluster; 2 after 1")
    parser.add_argument("--out", type=Path, default=Path("results/cluster/bits.json"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    nodes = ray_cluster()
    if options.nodes == 2:
        started(nodes)
    found = json.loads(options.out.read_text()) if options.out.exists() else []
    rows = {(row["task"], row["refresh"]): row for row in found}
    who = TWO_NODES if options.nodes == 2 else WHO
    for refresh in REFRESHES:
        for task in TASKS:
            row = rows.setdefault((task, refresh), {"task": task, "refresh": refresh, "who": {}})
            if set(who) <= set(row["who"]):
                continue
            with tempfile.TemporaryDirectory() as path:
                row["who"] |= outcomes(task, refresh, Path(path), who)
            print(task, refresh, "equal" if is_equal(row) else row["who"], file=sys.stderr, flush=True)
            write_atomically(options.out, (json.dumps(list(rows.values()), indent=2) + "\n").encode())
    print(table(list(rows.values())))
    sys.exit(not all(is_equal(row) for row in rows.values()))


if __name__ == "__main__":
    main()
