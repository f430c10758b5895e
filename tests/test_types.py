"""The types of everything promised are known to whoever installs the package."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import twotower as tt
from tests.command import ENVIRONMENT


def promised() -> set[str]:
    """The homes of all promised classes and functions."""
    rooms = [getattr(tt, name) for name in tt.__all__ if inspect.ismodule(getattr(tt, name))]
    things = [getattr(room, name) for room in (tt, *rooms) for name in getattr(room, "__all__", ())]
    return {f"{thing.__module__}.{thing.__qualname__}" for thing in things if hasattr(thing, "__qualname__")}


def test_the_types_of_the_public_names_are_complete(tmp_path: Path) -> None:
    pytest.importorskip("pyright")
    options = ["--verifytypes", "twotower", "--ignoreexternal", "--outputjson", "--pythonpath", sys.executable]
    command = [sys.executable, "-m", "pyright", *options]
    # With a PYTHONPATH, because pyright takes no editable installation for a package.
    run = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    report = json.loads(run.stdout)
    homes = promised()
    public = [
        symbol
        for symbol in report["typeCompleteness"]["symbols"]
        if any(symbol["name"] == home or symbol["name"].startswith(f"{home}.") for home in homes)
    ]
    assert len(public) > 200  # nothing is left out by accident
    unknown = [symbol["name"] for symbol in public if not symbol["isTypeKnown"] or symbol["isTypeAmbiguous"]]
    assert not unknown
