"""The package as a whole: what importing it costs, what it promises, and which way its imports point."""

import resource
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import twotower

ROOT = Path(__file__).parents[1]
HEAVY = {"matplotlib", "scipy.stats", "numba", "gymnasium", "envpool", "mujoco", "dm_control", "ray", "torch"}
HELP = "import sys; sys.argv = ['twotower', '--help']; from twotower.cli import main; main()"


def run_python(code: str) -> str:
    """Run code in a new interpreter and return what it printed."""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "code", ["import twotower, sys", HELP.replace("main()", "\ntry:\n    main()\nexcept SystemExit:\n    pass")]
)
def test_importing_and_asking_for_help_load_nothing_heavy(code: str) -> None:
    loaded = run_python(f"{code}\nprint(); print(*sys.modules)").splitlines()[-1].split()
    assert "twotower" in loaded
    assert HEAVY.isdisjoint(loaded), HEAVY.intersection(loaded)


def test_help_answers_at_once() -> None:
    """Processor time, best of three, and twice the bar of 0.5 s: other tests share the cores."""
    seconds = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert "train" in run_python(HELP)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(seconds) < 1.0


@pytest.mark.parametrize("name", twotower.__all__)
def test_every_promised_name_exists(name: str) -> None:
    assert name in dir(twotower)
    assert getattr(twotower, name) is not None


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = twotower.no_such_name


def test_the_version_is_said_once() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert twotower.__version__ == project["version"]


def test_imports_point_one_way() -> None:
    code = "from importlinter.cli import lint_imports; raise SystemExit(lint_imports(no_cache=True))"
    run_python(code)
