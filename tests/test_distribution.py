"""What is shipped: the wheel and the sdist build, and the wheel works outside the tree."""

import os
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT

DATA = {"py.typed", "experiments/published.json", "analysis/report/style.css"}


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist as an index would have it."""
    pytest.importorskip("hatchling")
    made, unpacked = tmp_path_factory.mktemp("made"), tmp_path_factory.mktemp("unpacked")
    run(sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", made, cwd=ROOT)
    with tarfile.open(next(made.glob("*.tar.gz"))) as sdist:
        sdist.extractall(unpacked, filter="data")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", made, cwd=next(unpacked.iterdir()))
    return next(made.glob("*.whl"))


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {f"twotower/{name}" for name in DATA} < set(names)
    assert {name.split("/")[0].split("-")[0] for name in names} == {"twotower"}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_trains_in_an_environment_of_its_own(wheel: Path, tmp_path: Path) -> None:
    """Its dependencies are lent by this environment, whose own twotower is an editable link and stays unseen."""
    run(sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(
        sys.executable, "-m", "pip", "--python", python, "install", "-q", "--no-deps", "--no-index", wheel, cwd=tmp_path
    )
    site = next((tmp_path / "venv" / "lib").glob("python*/site-packages"))
    (site / "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert Path(run(python, "-c", "import twotower; print(twotower.__file__)", cwd=tmp_path)).is_relative_to(site)
    command = tmp_path / "venv" / "bin" / "twotower"
    assert "halfcheetah" in run(command, "tasks", cwd=tmp_path)
    small = "--iterations 1 --executor serial --evaluation-episodes 2 --env.slots 2 --strategy.num-directions 1".split()
    assert "evaluation:" in run(command, "train", "cartpole", *small, cwd=tmp_path)
    assert run(command, "--version", cwd=tmp_path).strip() == f"twotower {wheel.name.split('-')[1]}"
