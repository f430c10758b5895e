"""Every code block of README.md and docs/ runs, with small budgets, in a folder where runs/hopper-… is a tiny run.

A block that cannot run says why in a comment before it: <!-- not run: it needs two machines -->.
"""

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import twotower as tt
from tests.command import run_python, twotower
from tests.docs.blocks import PAGES, ROOT, blocks, commands, extras_of, project, shortened
from twotower import cli

TINY = {
    "executor": "serial",
    "iterations": 2,
    "evaluation_episodes": 2,
    "progress": False,
    "candidates": {"count": 100},
    "strategy": {"num_directions": 2},
    "env": {"slots": 4, "max_episode_steps": 8},
}
# Commands that take minutes and have tests of their own: here their options are read.
LONG = ("bench", "reproduce", "tune")
SKIPPED = [block for block in blocks() if block.not_run]


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the runs that the pages name, and the modules that they show."""
    folder = tmp_path_factory.mktemp("docs")
    for name in sorted(set(re.findall(r"runs/\w+-[\w…]+", "".join(block.code for block in blocks())))):
        task = name.removeprefix("runs/").split("-")[0]
        if not (folder / task).exists():
            tt.train(task, run_dir=str(folder / task), **TINY)
        shutil.copytree(folder / task, folder / name)
    shutil.copy(folder / "swimmer" / "policy.safetensors", folder)
    for block in blocks():
        if block.title:
            (folder / block.title).write_text(block.code)
    return folder


@pytest.fixture
def inside(prepared: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(prepared)
    return prepared


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_python_blocks_run_one_after_the_other(page: Path, inside: Path) -> None:
    script = ""
    for block in blocks():
        if block.page == page and block.language == "python" and not block.not_run and not block.title:
            script += "\n" * (block.line - script.count("\n"))  # an error names the page's line
            script += re.sub(r"\b(iterations|episodes)=\d+", r"\1=1", block.code)
    if script:
        run_python(script, cwd=inside)


def only_parse(*arguments: Any, parse: Any = cli._parse) -> None:
    """Read a command's options, and end it."""
    parse(*arguments)
    raise SystemExit(0)


@pytest.mark.parametrize("line", commands())
def test_commands_run(
    line: str, inside: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program, *arguments = shlex.split(line)
    if program == "make":
        subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, capture_output=True)
    elif program == "pip":
        assert extras_of(line) <= set(project()["optional-dependencies"])
    elif "video" in line:  # drawing wants to choose its OpenGL before anything imports MuJoCo
        twotower(*shortened(arguments), cwd=inside)
    else:
        assert program == "twotower", f"{commands()[line]} shows {program!r}, which this test cannot run: mark it"
        monkeypatch.setattr("sys.argv", [program, *shortened(arguments)])
        if arguments[0] in LONG:
            monkeypatch.setattr(cli, "_parse", only_parse)
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        assert not stopped.value.code, (commands()[line], capsys.readouterr())


@pytest.mark.parametrize("block", SKIPPED, ids=lambda block: block.where)
def test_blocks_that_are_not_run_say_why(block: object) -> None:
    pytest.skip(block.not_run)  # pyright: ignore


def test_every_block_is_run_or_is_no_code() -> None:
    known = {"python", "bash", "sh", "console", "text", "", "toml", "json", "bibtex"}
    for block in blocks():
        assert block.language in known, f"{block.where}: no test runs {block.language!r}"
        if not block.is_shell:
            hidden = [line for line in block.code.splitlines() if line.startswith("twotower ")]
            assert block.language == "python" or not hidden, f"{block.where} shows commands in a block of another kind"
