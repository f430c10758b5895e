"""Search against its peers: `twotower bench search`.

The figure of merit is T(Q) = build + Q · query at a mean regret of at most 1 % or 0.1 %. Every method answers one
query at a time on one thread; a peer is given the best of a small grid of settings for each Q. Times are the
process's processor seconds, which other work on the machine disturbs least.
"""

import contextlib
import json
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from twotower.benchmarks.report import make_folder
from twotower.errors import UserError
from twotower.files.atomic import write_atomically
from twotower.runs.versions import versions

QUERIES = (1e2, 1e3, 1e4, 1e6)
REGRETS = (0.01, 0.001)
SIZES = (2, 3, 6, 14, 20, 64)
POWERS = (10, 14, 18, 20, 12, 16, 22)
HOPELESS = 3.0  # a peer whose least possible T is this many times the best, for every Q, is not tried
ASKED_SECONDS = 0.2  # time spent on the queries of one setting, about


@dataclass(frozen=True)
class SearchBenchmark:
    """Action search against its peers, by the time of building and of Q queries; a second call goes on."""

    quick: bool = False
    """Few sizes, in a minute or two."""
    calibrate: bool = False
    """Only measure this machine's costs for `auto`, and keep them in the cache folder."""
    sizes: tuple[int, ...] = SIZES
    """d, the latents' dimensions to measure."""
    powers: tuple[int, ...] = POWERS
    """N = 2^power."""
    workloads: tuple[Literal["trained", "random"], ...] = ("trained", "random")
    """Towers from training with queries from rollouts; random towers with Gaussian queries."""
    seconds: float | None = None
    """Stop after about this long; the next call goes on. None measures everything."""
    out: str = "results/search"
    """Folder for results.json, table.md and figures."""
    json: bool = False
    """Print all results as one JSON object."""

    def __post_init__(self) -> None:
        if any(size not in SIZES for size in self.sizes):
            raise UserError(f"--sizes are among {', '.join(map(str, SIZES))}.")
        if any(not 4 <= power <= 24 for power in self.powers):
            raise UserError("--powers must be between 4 and 24.")
        if self.seconds is not None and not self.seconds > 0:
            raise UserError(f"--seconds must be positive, not {self.seconds}.")

    def cells(self) -> list[tuple[str, int, int]]:
        """(workload, d, power); smaller N tell what is hopeless at larger ones."""
        powers, sizes = ((10, 14), (2, 6)) if self.quick else (self.powers, self.sizes)
        cells = [(kind, size, power) for power in powers for size in sizes for kind in self.workloads]
        return sorted(cells, key=lambda cell: cell[1] > 20)  # the slowest last


def main(options: SearchBenchmark) -> int:
    """Measure what is not measured yet, then write tables and figures."""
    from threadpoolctl import threadpool_limits

    # ScaNN and FAISS read it when they are loaded.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with threadpool_limits(1):
        if options.calibrate:
            return _calibrate()
        results = run(options)
    from twotower.benchmarks import search_report

    search_report.write(Path(options.out), results)
    print(json.dumps(results) if options.json else search_report.summary(results))
    return 0


def _calibrate() -> int:
    from twotower.benchmarks.calibration import calibrate
    from twotower.search.costs import calibrated_path, write

    def progress(done: int, total: int) -> None:
        print(f"\rmeasuring {done}/{total}", end="\n" if done == total else "", file=sys.stderr, flush=True)

    costs = calibrate(progress)
    write(costs, calibrated_path())
    print(f"auto now uses the costs in {calibrated_path()}, for {costs.machine}")
    return 0


def run(options: SearchBenchmark) -> dict[str, Any]:
    """Results so far and what is missing of them, saved after every method."""
    from twotower.benchmarks.search_methods import compile_ours

    folder, started = Path(options.out), time.perf_counter()
    make_folder(folder)
    results = _load(folder / "results.json")
    if options.quick or not results["command"]:
        results["command"] = "twotower bench search" + (" --quick" if options.quick else "")
    cells = options.cells()
    for number, (kind, size, power) in enumerate(cells):
        cell = results["cells"].setdefault(f"{kind}/{size}/{power}", {})
        if cell.get("done"):
            continue
        spent = time.perf_counter() - started
        if options.seconds is not None and spent > options.seconds:
            print(f"stopped after {spent:.0f} s; the next call goes on with cell {number + 1}", file=sys.stderr)
            break
        compile_ours()
        print(f"{number + 1}/{len(cells)} {kind} towers, d = {size}, N = 2^{power}", file=sys.stderr, flush=True)
        smaller = [p for p in range(power) if results["cells"].get(f"{kind}/{size}/{p}", {}).get("done")]
        earlier = results["cells"][f"{kind}/{size}/{smaller[-1]}"] if smaller else {}
        for name, tried in measure(kind, size, 2**power, cell, (2 ** (power - smaller[-1]) if smaller else 1, earlier)):
            cell[name] = tried
            write_atomically(folder / "results.json", json.dumps(results, indent=1).encode())
        cell["done"] = True
        write_atomically(folder / "results.json", json.dumps(results, indent=1).encode())
    return results


def _load(path: Path) -> dict[str, Any]:
    if path.is_file():
        with contextlib.suppress(ValueError, KeyError):
            results = json.loads(path.read_bytes())
            if results["format"] == 1:
                return results
        raise UserError(f"{path} holds other results: name another folder with --out.")
    return {"format": 1, "command": "", "date": time.strftime("%Y-%m-%d"), "versions": _versions(), "cells": {}}


def _versions() -> dict[str, str]:
    from importlib import metadata

    found = versions()
    for package in ("faiss-cpu", "hnswlib", "scann", "usearch"):
        with contextlib.suppress(metadata.PackageNotFoundError):
            found[package] = metadata.version(package)
    return found


def measure(
    kind: str, size: int, count: int, cell: dict[str, Any], earlier: tuple[int, dict[str, Any]]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Each method's settings, measured; ours first, so that peers that cannot win are seen at once."""
    from twotower.benchmarks import search_methods as methods
    from twotower.benchmarks.search_workloads import Problem, workload

    problem = Problem(workload(kind, size), count)
    if "auto" not in cell:
        tried = [
            asked(problem, methods.auto(problem.latents, problem.work.past, queries, regret))
            for regret in REGRETS
            for queries in QUERIES
        ]
        yield "auto", tried
        cell = cell | {"auto": tried}
    families = [(name, None, family) for name, family in methods.OURS.items()]
    families += [(name, package, family) for name, (package, family) in methods.PEERS.items()]
    for name, package, family in families:
        if name in cell:
            continue
        if methods.missing(package):
            yield name, [{"skipped": f"{package} is not installed"}]
        elif (verdict := hopeless(name, cell, earlier)) is not None:
            yield name, [{"skipped": verdict}]
        else:
            yield name, [asked(problem, tried) for tried in family(problem.latents)]


def asked(problem: Any, tried: Any) -> dict[str, Any]:
    """A setting's build and query seconds, and its regrets; slow ones are asked fewer queries."""
    started = time.process_time()
    tried.ask(problem.queries[:2])  # warms up
    each = max((time.process_time() - started) / 2, 1e-7)
    count = int(np.clip(ASKED_SECONDS / each, 8, len(problem.queries)))
    queries, seconds = problem.queries[:count], []
    found = tried.ask(queries)
    while len(seconds) < 2 or (sum(seconds) < ASKED_SECONDS / 4 and len(seconds) < 20):
        started = time.process_time()
        tried.ask(queries)
        seconds.append(time.process_time() - started)
    regrets = problem.regrets(np.clip(np.asarray(found, np.int64), 0, len(problem.latents) - 1))
    return {
        "setting": tried.setting,
        "build": tried.build,
        "query": min(seconds) / count,
        "regret": float(regrets.mean()),
        "worst": float(regrets.max()),
        "queries": count,
    } | tried.facts


def total(method: list[dict[str, Any]] | None, queries: float, regret: float) -> float:
    """The least T(Q) of a method's settings that keep a regret; `auto` counts as it was built for just that."""
    kept = [
        tried["build"] + queries * tried["query"]
        for tried in method or []
        if "build" in tried
        and tried["regret"] <= regret
        and tried.get("queries_per_build", queries) == queries
        and tried.get("wanted_regret", regret) == regret
    ]
    return min(kept, default=np.inf)


def hopeless(name: str, cell: dict[str, Any], earlier: tuple[int, dict[str, Any]]) -> str | None:
    """Why a method cannot come first for any Q here, by what it took among fewer candidates; None if it may.

    A build takes at least in proportion to N, and a query at least as long as among fewer.
    """
    times, before = earlier[0], earlier[1].get(name)
    if name in ("gemv", "brute_force") or not before:
        return None
    if all("skipped" in tried for tried in before):
        return before[0]["skipped"]
    if all(tried["regret"] > max(REGRETS) for tried in before if "build" in tried):
        return f"missed {max(REGRETS):.0%} among fewer candidates"
    for regret in REGRETS:
        for queries in QUERIES:
            least = min(times * t["build"] + queries * t["query"] for t in before if "build" in t)
            best = min(total(tried, queries, regret) for key, tried in cell.items() if key != "done")
            if least < HOPELESS * best:
                return None
    return f"by its time among fewer candidates, at least {HOPELESS:g} times the best for every Q"
