"""The command line explains itself: an example in every --help, and completion in real shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.command import sentence
from twotower import cli, completion

COMMANDS = [*cli.COMMANDS]
ASK = "source {file}; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _twotower; echo ${{COMPREPLY[@]}}"


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    files = {shell: tmp_path_factory.mktemp(shell) / "twotower" for shell in ("bash", "zsh", "fish")}
    for shell, file in files.items():
        file.write_text(completion.script(shell, cli.COMMANDS, cli.options_of))
    return files


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_an_example(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        raise SystemExit(cli.run(command, ["--help"]))
    said = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert not stopped.value.code and f"Example: twotower {command}" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_the_usage_names_every_command(command: str) -> None:
    assert f"\n  twotower {command}" in cli.USAGE


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("twotower ev", {"evaluate"}),
        ("twotower train swim", {"swimmer", "swimmer6", "swimmer15"}),
        ("twotower train hopper --policy.ki", {"--policy.kind"}),
        ("twotower train hopper --kind ''", {"itt", "iot", "explicit"}),
        ("twotower evaluate runs/x --epi", {"--episodes"}),
        ("twotower bench thr", {"throughput"}),
        ("twotower evaluate ''", set()),  # files, which the shell knows
    ],
)
def test_bash_completes(words: str, offered: set[str], scripts: dict[str, Path]) -> None:
    command = ["bash", "--norc", "-c", ASK.format(file=scripts["bash"], words=words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr and set(done.stdout.split()) == offered


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_can_read_their_script(shell: str, scripts: dict[str, Path]) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"no {shell} here")
    done = subprocess.run([shell, "-c", f"source {scripts[shell]}"], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_an_unknown_shell_is_refused_in_words(tmp_path: Path) -> None:
    assert sentence("--print-completion", "tcsh", cwd=tmp_path).startswith("--print-completion takes bash, zsh or fish")
