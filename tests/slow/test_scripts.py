"""The scripts of this folder, on a small scale: every fault and every target a few times."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.slow import fault_kinds, faults, fuzz, long_run

RAY = [kind for kind in fault_kinds.KINDS if "Ray" in kind]


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in fault_kinds.KINDS if kind not in RAY])
def test_every_fault_is_survived_with_the_same_bits(kind: str) -> None:
    row = faults.inflict(kind, injections=2, seed=1)
    assert row["injections"] == row["survived"] == row["equal"] >= 2


@pytest.mark.parametrize("target", fuzz.SHARES)
def test_damaged_input_loads_soundly_or_is_refused(target: str, tmp_path: Path) -> None:
    cases = 5 if target == "command_line" else 100
    result = fuzz.fuzz(target, getattr(fuzz.Targets(tmp_path), target), cases, seed=2)
    assert not result["broken"] and result["loaded"] + result["refused"] == cases


@pytest.mark.slow
def test_an_hour_under_fire_for_a_minute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    options = "--seconds 60 --every 10 --learnt 2 --out".split()
    monkeypatch.setattr(sys, "argv", ["long_run", str(tmp_path), *options, str(tmp_path / "out.json")])
    with pytest.raises(SystemExit) as ending:
        long_run.main()
    assert not ending.value.code
    assert json.loads(capsys.readouterr().out)["bits_equal"]
