"""The command line as users run it: a process of its own, in a folder of its own."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "100", "NO_COLOR": "1"}


def start(*arguments: str, cwd: Path) -> "subprocess.Popen[str]":
    """Start a command."""
    return subprocess.Popen(
        [sys.executable, "-m", "twotower.cli", *arguments],
        cwd=cwd,
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def twotower(*arguments: str, cwd: Path, expect: int = 0) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end, which must be the exit code expected."""
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=300)
    assert process.returncode == expect, (arguments, process.returncode, out, err)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def run_python(code: str, cwd: Path) -> str:
    """Run code in a new interpreter and return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def sentence(*arguments: str, cwd: Path) -> str:
    """The one sentence with which a command refuses, on standard error, with exit code 2."""
    done = twotower(*arguments, cwd=cwd, expect=2)
    said = done.stderr.strip()
    assert said.startswith("twotower: ") and "\n" not in said, done.stderr
    return said.removeprefix("twotower: ")


def wait_for_rows(run: Path, rows: int, process: "subprocess.Popen[str]", seconds: float = 120) -> None:
    """Wait until a training process has logged this many iterations."""
    deadline = time.monotonic() + seconds
    metrics = run / "metrics.jsonl"
    while not metrics.exists() or metrics.read_bytes().count(b"\n") < rows:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline, f"{rows} iterations took more than {seconds} seconds"
        time.sleep(0.005)
