"""What runs survive: `python -m tests.slow.faults --injections 300` makes the table in docs/reliability.md.

Every fault strikes a small run at a seeded random moment; the run goes on, by itself or by the next command, and
its result is compared with that of an undisturbed one, bit for bit.
"""

import argparse
import json
import math
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.slow.fault_kinds import KINDS, Outcome
from twotower.files.atomic import write_atomically
from twotower.randomness import generator

HEADINGS = ("fault", "injections", "survived", "bits equal", "work lost, at most")


def inflict(kind: str, injections: int, seed: int) -> dict[str, Any]:
    """One line of the table: runs with this fault until it has struck so often."""
    random, total, details = generator(seed, list(KINDS).index(kind)), Outcome(0, 0, 0), {}
    started = time.monotonic()
    while total.injections < injections:
        with tempfile.TemporaryDirectory() as path:
            found = KINDS[kind](Path(path), random)
        total = Outcome(*(left + right for left, right in zip(total[:3], found[:3], strict=True)))._replace(
            iterations_lost=max(total.iterations_lost, found.iterations_lost),
            seconds_lost=max(total.seconds_lost, found.seconds_lost),
        )
        details[found.what] = details.get(found.what, 0) + found.injections
        print(f"{kind}: {total.injections} of {injections}", file=sys.stderr, flush=True)
    return {
        "fault": kind,
        **total._asdict(),
        "what": details,
        "seed": seed,
        "minutes": (time.monotonic() - started) / 60,
    }


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1))]
    for row in rows:
        lost = f"{row['iterations_lost']} iterations, {row['seconds_lost']:.1f} s" if row["iterations_lost"] else "none"
        lines.append((row["fault"], row["injections"], row["survived"], row["equal"], lost))  # pyright: ignore
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines) + "\n"


def main() -> None:
    """Inflict, write after every kind, print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--injections", type=int, default=300, help="in total; slow kinds get a smaller share")
    parser.add_argument("--only", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/faults"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    share = options.injections / sum(WEIGHTS.get(kind, 1.0) for kind in options.only)
    file = options.out / "faults.json"
    rows = {row["fault"]: row for row in (json.loads(file.read_text()) if file.exists() else [])}
    for kind in options.only:
        rows[kind] = inflict(kind, math.ceil(share * WEIGHTS.get(kind, 1.0)), options.seed)
        ordered = [rows[name] for name in KINDS if name in rows]
        write_atomically(file, (json.dumps(ordered, indent=2) + "\n").encode())
        write_atomically(options.out / "table.md", table(ordered).encode())
    print(table([rows[kind] for kind in options.only]))
    sys.exit(any(row["survived"] < row["injections"] or row["equal"] < row["injections"] for row in rows.values()))


# Those that wait for a timeout or a node take many seconds each, the first two milliseconds.
WEIGHTS = {
    "the coordinator is killed at a random instant": 3.0,
    "the coordinator is killed while it writes a checkpoint": 3.0,
    "a worker is stopped (SIGSTOP)": 0.3,
    "a Ray actor is killed": 0.5,
    "a Ray node leaves, another joins": 0.2,
}

if __name__ == "__main__":
    main()
