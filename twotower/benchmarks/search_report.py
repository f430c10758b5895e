"""The search benchmark's results as a table, pictures and a summary."""

import io
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from twotower.benchmarks.search import QUERIES, REGRETS, total
from twotower.files.atomic import write_atomically

OURS = ("auto", "brute_force", "box_tree")
HINDSIGHT = ("random_k", "top_norm_k")  # keep a regret only as far as somebody measures it for them afterwards
# Okabe and Ito's palette: told apart by colour-blind readers.
COLOURS = ("#D55E00", "#000000", "#0072B2", "#009E73", "#E69F00", "#56B4E9", "#CC79A7", "#8C8C8C")
DRAWN = ("auto", "brute_force", "gemv", "faiss_flat", "scann", "hnswlib", "faiss_ivf", "top_norm_k")


def races(results: dict[str, Any]) -> list[dict[str, Any]]:
    """Every finished cell, Q and regret: auto's T, the best peer and its T."""
    rows = []
    for key, cell in results["cells"].items():
        if not cell.get("done"):
            continue
        kind, size, power = key.split("/")
        for regret in REGRETS:
            for queries in QUERIES:
                peers = {name: total(cell[name], queries, regret) for name in cell if name not in (*OURS, "done")}
                best = min(peers, key=lambda name: peers[name])
                others = min(seconds for name, seconds in peers.items() if name not in HINDSIGHT)
                rows.append(
                    {
                        "workload": kind, "d": int(size), "power": int(power), "regret": regret, "Q": queries,
                        "auto": total(cell["auto"], queries, regret), "peer": best, "peer_seconds": peers[best],
                        "without_hindsight": others,
                    }
                )  # fmt: skip
    return rows


def bars(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """How many races pass each bar, of how many: N ≤ 2^20 and d ≤ 20."""
    inside = [row for row in rows if row["power"] <= 20 and row["d"] <= 20]
    passed = {}
    for rivals, label in (("peer_seconds", "all peers"), ("without_hindsight", "all but random-k and top-norm-k")):
        first = sum(row["auto"] <= 1.1 * row[rivals] for row in inside)
        passed[f"first or within 10 % of first, {label}"] = (first, len(inside))
        for queries in QUERIES:
            asked = [row for row in inside if row["Q"] == queries]
            ahead = sum(row[rivals] >= 5 * row["auto"] for row in asked)
            passed[f"5 times ahead of the best at Q = {queries:,.0f}, {label}"] = (ahead, len(asked))
    return passed


def growth(results: dict[str, Any]) -> list[str]:
    """Query times at d = 6 (regret ≤ 1 %) from the smallest to the largest N up to 2^20, auto beside brute force."""
    lines = []
    for kind in ("trained", "random"):
        cells = {p: results["cells"].get(f"{kind}/6/{p}", {}) for p in range(10, 21, 2)}
        for name in ("auto", "brute_force"):
            times = {p: query_seconds(cell.get(name), 0.01) for p, cell in cells.items() if cell.get("done")}
            times = {p: seconds for p, seconds in times.items() if np.isfinite(seconds)}
            if len(times) > 1:
                ends = min(times), max(times)
                ratio = times[ends[1]] / times[ends[0]]
                first, last = (f"{times[p] * 1e6:.3g}" for p in ends)
                lines.append(f"{kind}, {name}: {first} µs at 2^{ends[0]}, {last} µs at 2^{ends[1]}, {ratio:.1f} times")
    return lines


def query_seconds(method: list[dict[str, Any]] | None, regret: float) -> float:
    """The fastest query that keeps a regret; auto's is the one it builds for very many."""
    kept = [
        tried["query"]
        for tried in method or []
        if "query" in tried
        and tried["regret"] <= regret
        and tried.get("queries_per_build", QUERIES[-1]) == QUERIES[-1]
        and tried.get("wanted_regret", regret) == regret
    ]
    return min(kept, default=np.inf)


def summary(results: dict[str, Any]) -> str:
    """A few lines for people."""
    rows = races(results)
    lines = [f"{name}: {passed} of {count}" for name, (passed, count) in bars(rows).items()]
    lost = [row for row in rows if row["auto"] > 1.1 * row["peer_seconds"]]
    lines += [f"behind by more than 10 %, at any N and d: {len(lost)} of {len(rows)}"]
    behind = Counter(row["peer"] for row in lost)
    lines += ["who is ahead there: " + ", ".join(f"{name} {times}" for name, times in behind.most_common())]
    return "\n".join(lines + [f"query time, d = 6: {line}" for line in growth(results)])


def write(folder: Path, results: dict[str, Any]) -> None:
    """Write table.md and, where matplotlib is installed, the figures."""
    write_atomically(folder / "table.md", table(results).encode())
    try:
        _draw(folder, results)
    except ImportError:
        print('no figures: they need matplotlib, pip install "twotower[plot]"')


def table(results: dict[str, Any]) -> str:
    """T(Q) of auto over that of the best peer, for every cell."""
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    lines = [
        "# Search against its peers",
        f"`{results['command']}` on {results['date']}; {versions}.",
        summary(results).replace("\n", "  \n"),
        "T(Q) = build + Q · query, one thread, one query at a time. Each entry: how many times sooner `auto` is done "
        "than the best peer, which is named; **bold** where the peer is ahead by more than a tenth, – where no peer "
        "keeps the regret, ✗ where `auto` misses it.",
    ]
    rows = races(results)
    for regret in REGRETS:
        for kind in ("trained", "random"):
            chosen = [row for row in rows if row["regret"] == regret and row["workload"] == kind]
            if chosen:
                lines += [f"## Regret at most {regret:.1%}, {kind} towers", _grid(chosen)]
    return "\n\n".join(lines) + "\n"


def _grid(rows: list[dict[str, Any]]) -> str:
    head = "| d | N | " + " | ".join(f"Q = {queries:,.0f}" for queries in QUERIES) + " |"
    lines = [head, "|---:|---:|" + "---:|" * len(QUERIES)]
    for size, power in sorted({(row["d"], row["power"]) for row in rows}):
        entries = [_entry(row) for row in rows if (row["d"], row["power"]) == (size, power)]
        lines.append(f"| {size} | 2^{power} | " + " | ".join(entries) + " |")
    return "\n".join(lines)


def _entry(row: dict[str, Any]) -> str:
    if not np.isfinite(row["auto"]):
        return f"✗ {row['peer']}"
    if not np.isfinite(row["peer_seconds"]):
        return "–"
    ratio = row["peer_seconds"] / row["auto"]
    entry = f"{ratio:.2g} {row['peer']}" if ratio < 100 else f"{ratio:,.0f} {row['peer']}"
    return f"**{entry}**" if row["auto"] > 1.1 * row["peer_seconds"] else entry


def _draw(folder: Path, results: dict[str, Any]) -> None:
    """query.png/svg: query time over N at d = 6; total.png/svg: T(10,000) over N at d = 6; regret at most 1 %."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    for name, label, value in (
        ("query", "seconds a query", lambda method: query_seconds(method, 0.01)),
        ("total", "seconds to build and ask 10,000 queries", lambda method: total(method, 1e4, 0.01)),
    ):
        figure = Figure(figsize=(9, 4.2), dpi=150, layout="constrained")
        FigureCanvasAgg(figure)
        for axes, kind in zip(figure.subplots(1, 2, sharey=True), ("trained", "random"), strict=True):
            for colour, method in zip(COLOURS, DRAWN, strict=True):
                cells = {p: results["cells"].get(f"{kind}/6/{p}", {}).get(method) for p in range(4, 25)}
                points = [(2.0**p, value(tried)) for p, tried in cells.items() if tried and np.isfinite(value(tried))]
                if points:
                    axes.loglog(*zip(*points, strict=True), marker="o", ms=3, color=colour, label=method, base=10)
            axes.set_xscale("log", base=2)
            axes.set_title(f"{kind} towers, d = 6, regret ≤ 1 %", loc="left", fontsize="medium")
            axes.set_xlabel("N, candidates")
            axes.grid(alpha=0.25, lw=0.6)
        figure.axes[0].set_ylabel(label)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=8, frameon=False, fontsize="small")
        for suffix in ("png", "svg"):
            picture = io.BytesIO()
            figure.savefig(picture, format=suffix, metadata={"Date": None} if suffix == "svg" else None)
            write_atomically(folder / f"{name}.{suffix}", picture.getvalue())
