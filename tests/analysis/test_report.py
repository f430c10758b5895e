"""The report shows what the run folders say, whatever is missing from them, in a real browser."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.browser import CHROMIUM, Browser
from tests.command import sentence, twotower
from twotower.analysis.report import write_report
from twotower.analysis.report.charts import ticks
from twotower.analysis.report.gather import gather
from twotower.analysis.report.groups import Group, by_task, curve, differences, smooth
from twotower.analysis.report.tables import number, phases
from twotower.analysis.ties import tie_rate
from twotower.api import merged
from twotower.runs import Evaluation, PolicyFile, RunFolder
from twotower.training import build, task_config


def make_run(folder: Path, task: str = "cartpole", score: float | None = None, rows: int = 40, **options: Any) -> Path:
    """A run folder as training leaves one, with curves that the test knows."""
    kind = options.get("policy", {}).get("kind")
    config = merged(task_config(task, kind), {"run_dir": str(folder), "iterations": rows, **options})
    run = RunFolder.create(config)
    seconds = {"ask": 1.0, "rollouts": 6.0, "tell": 1.0, "ship": 0.1, "slowest_worker": 5.0, "median_worker": 4.0}
    lines = [
        {"iteration": k + 1, "return": k + config.seed, "best": float(k), "steps": 100 * (k + 1)}
        | {"population_p10": k - 5, "population_p90": k + 5, "seconds": 8.0 * (k + 1)}
        | {"steps_per_s": 12.5, "saturation": 0.5}
        | ({"search_regret": 0.02, "search_recall": 0.9, "search_visited": 256.0} if config.seed == 1 else {})
        | {f"seconds_{name}": value for name, value in seconds.items()}
        for k in range(rows)
    ]  # fmt: skip
    run.metrics.write_text("".join(json.dumps(line) + "\n" for line in lines))
    if score is not None:
        _, spec, policy, strategy = build(config)
        PolicyFile(strategy.theta, config, spec, rows, 100 * rows, Evaluation((score, score), 0)).save(run.policy)
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two configurations with three seeds each, and folders in every state of disrepair."""
    folder = tmp_path_factory.mktemp("runs")
    for seed in range(3):
        make_run(folder / f"itt-{seed}", score=100.0 + seed, seed=seed)
        make_run(folder / f"explicit-{seed}", score=90.0 + seed**2, seed=seed, policy={"kind": "explicit"}, workers=1)
    make_run(folder / "empty", seed=7)
    (folder / "empty" / "metrics.jsonl").write_text("")
    torn = make_run(folder / "torn", seed=8)
    (torn / "metrics.jsonl").write_bytes((torn / "metrics.jsonl").read_bytes()[:-7])
    (torn / "policy.safetensors").write_bytes(b"half")
    damaged = make_run(folder / "damaged", seed=9)
    (damaged / "metrics.jsonl").write_text('{"iteration": 1, "return": "high", "steps": null}\nnonsense\n')
    (folder / "old").mkdir()
    (folder / "old" / "config.json").write_text('{"task": "<i>cartpole</i>", "colour": 1}')
    (folder / "lost").mkdir()
    (folder / "lost" / "metrics.jsonl").write_text("{}\n")
    return folder


@pytest.fixture(scope="module")
def page(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("page") / "report.html"
    write_report([runs], out)
    return out


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM:
        pytest.skip("no Chromium here (Debian: apt-get install chromium)")
    with Browser() as browser:
        yield browser


def cells(html: str, heading: str) -> list[str]:
    """The texts of the row whose heading this is."""
    row = next(row for row in re.findall(r"<tr>(.*?)</tr>", html, re.S) if f'<th scope="row">{heading}</th>' in row)
    return [re.sub("<.*?>", "", cell) for cell in re.findall(r"<td.*?>(.*?)</td>", row, re.S)]


def test_the_tables_hold_the_numbers(page: Path) -> None:
    html = page.read_text()
    assert cells(html, "ITT")[:5] == ["3 of 6", "101.0", "1", "98.5 to 103.5", "101.0"]
    assert cells(html, "explicit")[1] == number(90 + 5 / 3)
    # Differences 10, 10, 8 by hand: mean 28/3, deviation 2/√3, t = 14 with two degrees of freedom.
    assert cells(html, "ITT − explicit") == ["3", "9.33", "8.08", "0.005", "0.005"]
    assert cells(html, "<code>policy.kind</code>") == ["itt", "explicit"]
    assert cells(html, "<code>workers</code>") == ["default", "1"]
    assert "<code>seed</code>" not in html and "run_dir" not in html
    assert cells(html, "itt-1")[:7] == ["ITT", "1", "40", "4,000", "101.0 ± 0", "39.0", "50.0 %"]
    searched = "Search: regret 2.0 %, recall 90.0 %, 256 candidates scored a choice."
    assert searched in cells(html, "itt-1")[-1] and "Search" not in cells(html, "itt-0")[-1]


def test_what_cannot_be_read_is_said_in_the_page(page: Path) -> None:
    html = page.read_text()
    assert "No iteration is recorded yet." in cells(html, "empty")[-1]
    assert "is not a twotower policy file, or is damaged" in cells(html, "torn")[-1]
    assert cells(html, "torn")[2] == "39"  # without the torn line
    assert "is damaged at line 2" in cells(html, "damaged")[-1]
    assert "has an unknown field &#x27;colour&#x27;" in html
    assert "lost is not a run folder" in html
    assert "<i>" not in html


def test_the_page_needs_nothing_from_anywhere(page: Path) -> None:
    html = page.read_text()
    assert not re.search(r"https?:|<script|url\(|@import|<link rel=.stylesheet", html)
    assert "default-src 'none'" in html


def test_runs_are_grouped_by_all_but_their_seed(runs: Path, tmp_path: Path) -> None:
    (groups,) = by_task(gather([runs]).runs).values()
    assert [(group.name, len(group.runs)) for group in groups] == [("ITT", 6), ("explicit", 3)]
    for name, sigma in (("a", 0.1), ("b", 0.2), ("c", 0.2)):
        make_run(tmp_path / name, seed=len(name), strategy={"sigma": sigma}, candidates={"count": 50})
    (groups,) = by_task(gather([tmp_path]).runs).values()
    assert [group.name for group in groups] == ["ITT · sigma 0.1", "ITT · sigma 0.2"]
    assert differences(groups) == [("strategy.sigma", ["0.1", "0.2"])]


def test_a_curve_is_the_mean_over_runs_on_common_steps(tmp_path: Path) -> None:
    for seed in (0, 2):
        make_run(tmp_path / str(seed), seed=seed)
    (group,) = by_task(gather([tmp_path]).runs)["cartpole"]
    line = curve(group)
    assert line is not None
    np.testing.assert_allclose(line.mean, line.steps / 100)  # k + seed at step 100 (k + 1), seeds 0 and 2
    np.testing.assert_allclose(line.high - line.low, 1.6)  # from the tenth to the ninetieth percentile of two
    np.testing.assert_allclose(np.array(phases(group)) / 80, [1, 4, 1, 1, 1])
    alone = by_task(gather([tmp_path / "0"]).runs)["cartpole"][0]
    line = curve(alone)
    assert line is not None
    np.testing.assert_allclose(line.high - line.low, 10)  # its population


def test_a_run_that_ended_early_stays_in_the_mean() -> None:
    def run(steps: list[float], returns: list[float]) -> Any:
        columns = {"steps": np.array(steps), "return": np.array(returns)}
        return SimpleNamespace(column=lambda name: columns[name])

    line = curve(Group("ITT", (run([0, 10], [-9, -9]), run([0, 20], [0, 3]), run([0, 20], [0, 3]))))
    assert line is not None and line.steps[-1] == 20
    assert line.mean[-1] == -1


def test_smoothing_keeps_means_and_passes_over_gaps() -> None:
    np.testing.assert_array_equal(smooth(np.arange(99.0)), np.arange(99.0))
    values = np.arange(400.0)
    values[200] = np.nan
    smoothed = smooth(values)
    assert smoothed[100] == 100
    assert smoothed[203] == (9 * 203 - 200) / 8  # the mean of 199 … 207 without 200
    assert np.isfinite(smoothed).all()


@pytest.mark.parametrize(("low", "high"), [(0, 1), (-3.7, 1200), (1e6, 1.00001e6), (-0.001, 0.002)])
def test_ticks_are_few_and_inside(low: float, high: float) -> None:
    found = ticks(low, high, 5)
    assert 2 <= len(found) <= 7 and low <= found[0] and found[-1] <= high + 1e-9


@pytest.mark.parametrize(("dark", "width"), [(False, 1100), (True, 1100), (False, 360), (True, 360)])
def test_the_page_in_a_browser(browser: Browser, page: Path, dark: bool, width: int, tmp_path: Path) -> None:
    browser.requests.clear()
    browser.open(page, width, dark=dark)
    assert browser.problems == []
    assert browser.requests == [page.resolve().as_uri()]
    assert browser.evaluate("document.documentElement.scrollWidth") <= width
    background = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 24, 29)" if dark else "rgb(255, 255, 255)")
    shown = browser.evaluate(
        "[...document.querySelectorAll('.chart')].filter(c => c.clientWidth).map(c => c.classList[1])"
    )
    assert shown and set(shown) == {"narrow" if width < 600 else "wide"}
    smallest = (
        "Math.min(...[...document.querySelectorAll('.chart text')].map(t => t.getBoundingClientRect().height || 99))"
    )
    assert browser.evaluate(smallest) >= 8  # legible
    assert browser.screenshot(tmp_path / "page.png").startswith(b"\x89PNG")


def test_the_page_by_keyboard_and_ear(browser: Browser, page: Path) -> None:
    browser.open(page)
    levels = browser.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map(h => +h.tagName[1])")
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(levels, levels[1:], strict=False))
    nodes = browser("Accessibility.getFullAXTree")["nodes"]
    roles = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node["ignored"]]
    assert {"banner", "main", "navigation", "contentinfo"} <= {role for role, _ in roles}
    unnamed = [role for role, name in roles if role in ("image", "img", "table", "region", "link") and not name]
    assert unnamed == []
    assert browser.evaluate("document.querySelectorAll('th:not([scope])').length") == 0
    assert any(role in ("image", "img") and "Learning curves of cartpole" in name for role, name in roles)
    browser.press("Tab", 9)
    assert browser.evaluate("document.activeElement.className") == "skip"
    assert browser.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    browser.press("Tab", 9)
    assert browser.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def contrast(browser: Browser, selector: str) -> float:
    """The contrast of an element's text against the page, as WCAG counts it."""

    def luminance(colour: str) -> float:
        parts = np.array(re.findall(r"[\d.]+", colour)[:3], float) / 255
        return float(
            np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]
        )

    text = f"getComputedStyle(document.querySelector('{selector}')).color"
    colours = browser.evaluate(f"[{text}, getComputedStyle(document.body).backgroundColor]")
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_words_stand_out_from_the_page(browser: Browser, page: Path, dark: bool) -> None:
    browser.open(page, dark=dark)
    for selector in ("body", ".note", "caption", "nav a", "summary", "thead th"):
        assert contrast(browser, selector) >= 4.5, selector


def test_ties_are_counted(tmp_path: Path) -> None:
    config = merged(task_config("cartpole"), {"iterations": 1})
    _, spec, policy, _ = build(config)
    linear = merged(config, {"policy": {"activation": "linear"}})
    # CartPole's candidates enter as 0 and 1: a zero action tower scores both 0.
    assert tie_rate(PolicyFile(np.zeros(policy.num_params), config, spec, 1, 1)) == 1.0
    assert tie_rate(PolicyFile(np.full(policy.num_params, 0.5), linear, spec, 1, 1)) == 0.0
    explicit = merged(task_config("cartpole", "explicit"), {"iterations": 1})
    _, spec, policy, _ = build(explicit)
    assert tie_rate(PolicyFile(np.ones(policy.num_params), explicit, spec, 1, 1)) is None


def test_the_command_embeds_a_video(tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a", score=1.0, env={"max_episode_steps": 20})
    done = twotower("report", "runs", "--out", "page.html", "--title", "A & B", "--video", "--no-ties", cwd=tmp_path)
    assert done.stdout == "page.html: 1 run\n"
    html = (tmp_path / "page.html").read_text()
    assert "<h1>A &amp; B</h1>" in html and html.count("data:video/mp4;base64,") == 1
    assert (tmp_path / "runs" / "a" / "video.mp4").exists()
    (tmp_path / "runs" / "a" / "video.mp4").unlink()
    shutil.copytree(tmp_path / "runs" / "a", tmp_path / "b")
    (tmp_path / "b" / "video.gif").write_bytes(b"GIF89a")
    assert twotower("report", "b", "runs/a", cwd=tmp_path).stdout == "report.html: 2 runs\n"
    assert "data:image/gif;base64,R0lGODlh" in (tmp_path / "report.html").read_text()


def test_nothing_to_show_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    assert sentence("report", cwd=tmp_path) == "Name run folders or a folder of them: twotower report runs/"
    assert sentence("report", "nothing", cwd=tmp_path).startswith("There are no runs in nothing")
    assert sentence("report", "gone", cwd=tmp_path).startswith("There is no run folder gone")
    make_run(tmp_path / "a")
    assert sentence("report", "a", "--out", "gone/a.html", cwd=tmp_path).startswith("Cannot write gone/a.html")
