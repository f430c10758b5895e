"""What a run opens to the network: nothing, and with a Ray of its own nothing beyond the loopback interface."""

import contextlib
import importlib.util
import os
import signal
from pathlib import Path

import pytest

from tests.command import start, wait_for_rows
from tests.training.runs import new_folder, variant

LOOPBACK = {"0100007F", "0000000000000000FFFF00000100007F", "00000000000000000000000001000000"}
LISTENING = "0A"


def family(pid: int) -> set[int]:
    """A process and its descendants."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rsplit(")", 1)[1].split()[1])
    found, more = set(), {pid}
    while more:
        found |= more
        more = {child for child, parent in parents.items() if parent in found} - found
    return found


def listening(pids: set[int]) -> list[str]:
    """The addresses, in the kernel's hexadecimal, on which these processes accept connections."""
    sockets = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            for descriptor in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    sockets.add(os.readlink(f"/proc/{pid}/fd/{descriptor}"))
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return [line[1].split(":")[0] for line in lines if line[3] == LISTENING and f"socket:[{line[9]}]" in sockets]


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["processes", "ray"])
def test_nothing_listens_beyond_loopback(executor: str, tmp_path: Path) -> None:
    if executor == "ray" and importlib.util.find_spec("ray") is None:
        pytest.skip("Ray is not installed")
    folder = new_folder(variant("world", iterations=10**6, executor=executor, workers=2), tmp_path / "run")
    process = start("resume", "run", cwd=tmp_path)
    try:
        wait_for_rows(folder.path, 1, process)
        found = listening(family(process.pid))
        assert bool(found) == (executor == "ray")
        assert set(found) <= LOOPBACK
    finally:
        for pid in (process.pid, *(family(process.pid) - {process.pid})):  # as a terminal does at Ctrl-C
            os.kill(pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130 and "Go on with: twotower resume run" in out, err
    assert len(err.splitlines()) == 1, err  # Ray keeps quiet
