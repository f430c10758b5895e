"""The documentation builds without a warning, and its pages need no network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, commands


def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}  # about its own future
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and "WARNING" not in done.stderr, done.stdout + done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = re.findall(
            r'<(?:script|img|link rel="stylesheet")[^>]*(?:src|href)="(https?:[^"]+)"', page.read_text()
        )
        assert not loaded, (page, loaded)
    example = re.sub(r"<[^>]+>", "", (tmp_path / "examples" / "index.html").read_text())
    assert "class Reach(gym.Env)" in example  # the scripts are on the page


def test_every_verb_of_the_makefile_is_explained() -> None:
    text = (ROOT / "Makefile").read_text()
    verbs = set(re.search(r"^\.PHONY: (.*)$", text, re.M)[1].split()) - {"help"}  # pyright: ignore
    assert verbs == set(re.findall(r"make (\w+) ", re.search(r"^help:\n((?:\t.*\n)+)", text, re.M)[1]))  # pyright: ignore
    assert {line.split()[1] for line in commands() if line.startswith("make ")} <= verbs
