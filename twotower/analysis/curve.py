"""curve.png, kept current while a run trains: drawn by a process of its own, so that training never waits."""

import importlib.util
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import final

from twotower.runs import RunFolder, read_metrics

FIRST_AFTER = 20.0  # seconds of training
REST = 100  # times what drawing took: it costs one core no more than a hundredth


@final
class Curve:
    """Draws a run's curve now and then; used as a context manager."""

    def __init__(self, folder: RunFolder) -> None:
        self.folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self._started = self._next = time.monotonic() + FIRST_AFTER
        self._can = importlib.util.find_spec("matplotlib") is not None

    def refresh(self) -> None:
        """Start to draw, if the last picture is old enough."""
        now = time.monotonic()
        if self._process is not None and self._process.poll() is not None:
            self._process, self._next = None, now + REST * (now - self._started)
        if self._process is not None or not self._can or now < self._next:
            return
        command = [sys.executable, "-m", "twotower.analysis.curve", str(self.folder.path)]
        with suppress(OSError):
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )
        self._started, self._next = now, now + FIRST_AFTER

    def __enter__(self) -> "Curve":
        return self

    def __exit__(self, *exception: object) -> None:
        """End a drawing that is under way: an older picture must not replace a newer one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def draw(folder: RunFolder) -> bool:
    """Draw curve.png where matplotlib is installed; whether it was."""
    rows = read_metrics(folder.metrics)
    if not rows or importlib.util.find_spec("matplotlib") is None:
        return False
    from twotower.analysis.figures import draw_curve

    config = folder.read_config()
    draw_curve(rows, folder.curve, f"{config.task} · {config.policy.kind} · seed {config.seed}")
    return True


if __name__ == "__main__":
    os.nice(19)
    draw(RunFolder(Path(sys.argv[1])))
