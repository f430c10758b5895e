"""The page itself: one section a task, nothing fetched, no scripts."""

import base64
import shlex
import sys
import time
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path

import numpy as np

from twotower import __version__
from twotower.actions.base import DiscreteActions
from twotower.analysis.report import tables
from twotower.analysis.report.charts import Line, line_chart, share_bars
from twotower.analysis.report.gather import Gathered, LeftOut, RunRecord, gather
from twotower.analysis.report.groups import Curve, Group, by_task, curve
from twotower.analysis.report.tables import Seen
from twotower.errors import UserError
from twotower.files.atomic import write_atomically

MOST_VIDEO = 25_000_000  # bytes of videos in one page
# The page needs nothing from anywhere, and lets nothing in.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; media-src data:"


def write_report(
    paths: Sequence[str | Path], out: str | Path, title: str = "Training runs", ties: bool = True, video: bool = False
) -> Gathered:
    """Write a self-contained page about run folders, or folders of them, and return what it shows."""
    gathered = gather(paths)
    seen = {str(run.path): look(run) for run in _progress(gathered.runs, "counting ties")} if ties else {}
    if video:
        film([run for run in gathered.runs if run.video is None and run.file is not None])
    page = render(gathered, seen, title)
    write_atomically(Path(out), page.encode())
    return gathered


def look(run: RunRecord) -> Seen:
    """Run an episode of the policy to see how often its best scores tie."""
    from twotower.analysis.ties import tie_rate

    if run.file is None:
        return Seen()
    try:
        return Seen(tie_rate(run.file))
    except UserError as error:
        return Seen(why_not=str(error))


def film(runs: Sequence[RunRecord]) -> None:
    """Film one run of every configuration that has no video yet: the one with the best evaluation."""
    from twotower.analysis.video import record_video
    from twotower.training import TrainedPolicy

    chosen = [
        max(group.runs, key=lambda run: -np.inf if run.score is None else run.score)
        for groups in by_task(runs).values()
        for group in groups
    ]
    for run in _progress(chosen, "filming"):
        assert run.file is not None
        record_video(TrainedPolicy(run.file), run.path / "video.mp4")


def render(gathered: Gathered, seen: dict[str, Seen], title: str) -> str:
    """The page as HTML."""
    tasks = by_task(gathered.runs)
    budget = [MOST_VIDEO]
    sections = [_task(number, task, groups, seen, budget) for number, (task, groups) in enumerate(tasks.items())]
    links = [f'<li><a href="#task-{number}">{escape(task)}</a></li>' for number, task in enumerate(tasks)]
    if gathered.left_out:
        sections.append(_left_out(gathered.left_out))
        links.append('<li><a href="#left-out">left out</a></li>')
    style = files("twotower.analysis.report").joinpath("style.css").read_text()
    count = len(gathered.runs)
    made = time.strftime("%Y-%m-%d %H:%M")
    command = shlex.join(["twotower", *sys.argv[1:]]) if sys.argv[1:2] == ["report"] else "twotower.write_report"
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<header>
<h1>{escape(title)}</h1>
<p class="lead">{count} {"run" if count == 1 else "runs"} of {len(tasks)} {"task" if len(tasks) == 1 else "tasks"}</p>
</header>
<nav aria-label="Tasks"><ul>{"".join(links)}</ul></nav>
<main id="main">
{"".join(sections)}
</main>
<footer>
<p>Made {made} by twotower {escape(__version__)} with <code>{escape(command)}</code></p>
</footer>
</body>
</html>
"""


def _task(number: int, task: str, groups: list[Group], seen: dict[str, Seen], budget: list[int]) -> str:
    """A task's section."""
    env_id = groups[0].runs[0].config.env_id or task
    parts = [f'<section aria-labelledby="task-{number}"><h2 id="task-{number}">{escape(task)}</h2>']
    parts.append(f'<p class="lead">Environment {escape(env_id)}</p>' if env_id != task else "")
    parts += ["<h3>Learning curves</h3>", _curves(task, groups)]
    parts += ["<h3>Comparison</h3>", tables.comparison(task, groups)]
    parts += [tables.paired(groups) if len(groups) > 1 else ""]
    parts += ["<h3>Configurations</h3>", tables.configuration(groups)]
    parts += [_saturation(task, groups), _phases(groups)]
    parts += [_videos(groups, budget)]
    parts += ["<h3>Runs</h3>", tables.runs(groups, seen), "</section>"]
    return "\n".join(part for part in parts if part)


def _curves(task: str, groups: list[Group]) -> str:
    found = [(group, line) for group in groups if (line := curve(group)) is not None]
    if not found:
        return '<p class="note">No iteration is recorded yet.</p>'
    ends = "; ".join(f"{group.name} ends at {tables.number(line.mean[-1])}" for group, line in found)
    chart = line_chart(
        [_line(group, line) for group, line in found], "environment steps", "return", f"Learning curves of {task}", ends
    )
    note = (
        '<p class="note">Lines: the return of θ<sub>k</sub>, one training episode an iteration, averaged over runs and '
        "over a fiftieth of the curve. A run that ended earlier counts with its last return. Bands: the 10th to "
        "90th percentile over runs; where there is one run, over its population.</p>"
    )
    return chart + note + tables.points([group.name for group, _ in found], [line for _, line in found])


def _saturation(task: str, groups: list[Group]) -> str:
    """How near to the box's limits actions were, where there is a box."""
    boxed = [group for group in groups if not any(_is_discrete(run) for run in group.runs)]
    found = [(group, line) for group in boxed if (line := curve(group, "saturation")) is not None]
    if not found:
        return ""
    ends = "; ".join(f"{group.name} ends at {100 * line.mean[-1]:.0f} %" for group, line in found)
    chart = line_chart(
        [_line(group, line) for group, line in found], "environment steps", "mean |action|",
        f"Action saturation of {task}", ends,
    )  # fmt: skip
    return "<h3>Action saturation</h3>" + chart


def _phases(groups: list[Group]) -> str:
    rows = [(group.name, seconds) for group in groups if (seconds := tables.phases(group)) is not None]
    if not rows:
        return ""
    bars = share_bars(rows, tables.PHASES, "Time per phase")
    return f"<h3>Where the time went</h3>{bars}"


def _videos(groups: list[Group], budget: list[int]) -> str:
    """The videos in the run folders, inside the page as long as there is room."""
    shown = []
    for group in groups:
        for run in group.runs:
            if run.video is None:
                continue
            name = f"{group.name}, seed {run.config.seed}"
            size = run.video.stat().st_size
            if size > budget[0]:
                shown.append(f"<p>{escape(name)}: {escape(str(run.video))} ({size / 1e6:.0f} MB, not embedded)</p>")
                continue
            budget[0] -= size
            data = base64.b64encode(run.video.read_bytes()).decode()
            label = escape(f"An episode of {run.config.task}: {name}")
            player = f'<img alt="{label}" src="data:image/gif;base64,{data}">'
            if run.video.suffix == ".mp4":
                player = (
                    f'<video controls loop preload="metadata" aria-label="{label}" '
                    f'src="data:video/mp4;base64,{data}"></video>'
                )
            shown.append(f"<figure>{player}<figcaption>{escape(name)}</figcaption></figure>")
    return f'<h3>Videos</h3><div class="videos">{"".join(shown)}</div>' if shown else ""


def _left_out(left_out: Sequence[LeftOut]) -> str:
    items = "".join(f"<li><strong>{escape(str(out.path))}</strong>: {escape(out.reason)}</li>" for out in left_out)
    return (
        '<section aria-labelledby="left-out"><h2 id="left-out">Left out</h2>'
        f"<p>These folders could not be read as runs.</p><ul>{items}</ul></section>"
    )


def _line(group: Group, line: Curve) -> Line:
    return Line(group.name, line.steps, line.mean, line.low, line.high)


def _is_discrete(run: RunRecord) -> bool:
    return run.file is not None and isinstance(run.file.spec.actions, DiscreteActions)


def _progress(items: Sequence[RunRecord], what: str):
    """Go through runs under a progress bar, on a terminal."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    return track(items, what, console=console, transient=True, disable=not console.is_terminal)
