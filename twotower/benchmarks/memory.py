"""Peak memory of this process and all its descendants, as Linux counts it."""

import contextlib
import os
from pathlib import Path


def reset_peak() -> None:
    """Let this process's peak start anew from what it holds now, where the kernel allows it."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_bytes() -> int | None:
    """The sum of the peak resident sizes (VmHWM), or None without /proc.

    An upper bound of the tree's true peak: pages that processes share count for each, and the processes
    need not have peaked together.
    """
    parents, peaks = {}, {}
    for path in Path("/proc").glob("[0-9]*/status"):
        with contextlib.suppress(OSError):  # the process has ended
            facts = dict(line.split(":", 1) for line in path.read_text().splitlines())
            process = int(path.parent.name)
            parents[process] = int(facts["PPid"])
            peaks[process] = int(facts.get("VmHWM", "0 kB").split()[0]) * 1024
    tree, found = set(), {os.getpid()}
    while found:
        tree |= found
        found = {process for process, parent in parents.items() if parent in found}
    return sum(peaks.get(process, 0) for process in tree) or None
