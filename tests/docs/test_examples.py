"""Every script under examples/ runs, with its budget made small, from any folder."""

import importlib.util
import re
from pathlib import Path

import pytest

from tests.command import run_python
from tests.docs.blocks import ROOT

SCRIPTS = sorted((ROOT / "examples").glob("*.py"))
SMALL = {"ITERATIONS": 2, "SEEDS": 1, "CANDIDATES": 3000, "QUERIES": 50, "STEPS": 60, "EPISODES": 2, "ENVIRONMENTS": 2}
NEEDS = {
    "cluster": ("ray", "envpool"),
    "compare_policies": ("envpool",),
    "serve_with_hashing": ("envpool",),
    "train_and_watch": ("envpool", "mujoco", "imageio_ffmpeg"),
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_an_example_runs_and_says_what_it_found(script: Path, tmp_path: Path) -> None:
    for package in NEEDS.get(script.stem, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs {package}")
    budgets = "|".join(SMALL)
    code = re.sub(
        rf"^({budgets}) = [\d_]+", lambda found: f"{found[1]} = {SMALL[found[1]]}", script.read_text(), flags=re.M
    )
    assert code != script.read_text(), "an example has a budget that tests can make small"
    (tmp_path / script.name).write_text(code)
    assert run_python(f"import runpy; runpy.run_path({script.name!r}, run_name='__main__')", cwd=tmp_path).strip()
