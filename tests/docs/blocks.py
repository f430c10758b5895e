"""The code blocks of the documentation: which there are, and how a test runs each."""

import re
import shlex
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"(?P<indent> *)```(?P<info>.*)\n(?P<code>(?:.*\n)*?)(?P=indent)```\n")
NOT_RUN = re.compile(r"<!-- not run: (.+) -->\n *\Z")
PROGRAMS = ("twotower", "make", "pip")

# Options that end what a page shows within seconds; of an option given twice the last counts.
SMALL = {
    "train": "--iterations 2 --executor serial --evaluation-episodes 2 --env.slots 4 --env.max-episode-steps 8"
    " --strategy.num-directions 2 --strategy.top-directions 2",
    "resume": "--iterations 3",
    "evaluate": "--episodes 2",
    "video": "--seconds 0.2",
}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    code: str
    not_run: str | None

    @property
    def is_shell(self) -> bool:
        """Whether it holds commands: said by its language, or plain from its first line."""
        return self.language in ("bash", "sh", "console") or (not self.language and self.code.startswith(PROGRAMS))

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@cache
def blocks() -> tuple[Block, ...]:
    """All blocks of all pages, in order."""
    return tuple(block for page in PAGES for block in _blocks(page))


def _blocks(page: Path) -> list[Block]:
    text, found = page.read_text(), []
    for match in FENCE.finditer(text):
        before = text[: match.start()]
        language, _, rest = match["info"].partition(" ")
        title, reason = re.search(r'title="([^"]+)"', rest), NOT_RUN.search(before)
        code = "".join(line.removeprefix(match["indent"]) for line in match["code"].splitlines(keepends=True))
        found.append(
            Block(page, before.count("\n") + 1, language, title and title[1], code, reason and reason[1])  # pyright: ignore
        )
    return found


@cache
def commands() -> dict[str, list[str]]:
    """Every command line that the pages show to be run, and where."""
    places: dict[str, list[str]] = {}
    for block in blocks():
        if block.is_shell and not block.not_run:
            for line in block.code.replace("\\\n", " ").splitlines():
                words = shlex.join(shlex.split(line, comments=True))
                if words:
                    places.setdefault(words, []).append(block.where)
    return places


def shortened(arguments: list[str]) -> list[str]:
    """The arguments of `twotower` with a budget for tests."""
    for command, options in SMALL.items():
        if arguments[:1] == [command] and "--help" not in arguments:
            return [*arguments, *options.split()]
    return arguments


def extras_of(requirement: str) -> set[str]:
    """The extras that a pip requirement such as twotower[video,plot] names."""
    found = re.search(r"\[(.+)\]", requirement)
    return set(found[1].split(",")) if found else set()


def project() -> dict[str, Any]:
    """What pyproject.toml says of the project."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
