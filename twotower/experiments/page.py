"""docs/results.md, made from the results folder alone: python -m twotower.experiments.page [--check]."""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from twotower import experiments
from twotower.errors import UserError
from twotower.experiments.write import table_markdown
from twotower.files.atomic import write_atomically

GOOD = (
    "agrees",
    "above",
    "same side",
    "comparable",
    "holds",
    "saves time in both",
    "within",
    "fewer",
    "equal in every",
)
OPEN = ("cut", "one seed", "no test", "nothing", "measured by us only", "not printed", "-")
OURS = ("fast", "search-return")  # which have pages of their own
PAPERS = tuple(name for name in experiments.RESULTS if name not in OURS)
INTRODUCTION = """\
# Results

Every published table and figure of the paper, beside what we measured. This page is made from the `results` folder by \
`python -m twotower.experiments.page`, and a test checks that they agree; `data.json` in each result's folder names \
the command, versions, machine, seeds and budget of every run.

```
twotower reproduce --list                     # the results, and what they cost
twotower reproduce all --budget quick         # all of them, in short runs
twotower reproduce scores --budget paper --tasks swimmer hopper --seeds 5
twotower reproduce scores --tasks Ant-v5 --policies itt explicit
```

Runs are kept in `runs/reproduce`: a finished one is never run twice, an interrupted one goes on, a longer one begins \
where the shorter one ended. Each finished run leaves a record in `results/runs`, with its configuration, curve, \
evaluation and parameters, and the tables are made from the records: whoever has them needs no run folders, and the \
same command trains only what is lacking. With another `--out` everything is run anew. `--collect` writes tables and \
figures from what is finished. A cell whose runs are shorter than the paper's says so, and a cell without a run says \
what it would cost."""


def page(results: Path) -> str:
    """The page's Markdown."""
    found = {name: data for name in PAPERS if (data := _read(results / name / "data.json"))}
    parts = [INTRODUCTION, "## What reproduces", _summary(found), (results / "remarks.md").read_text().strip()]
    for name in PAPERS:
        result = experiments.get(name)
        parts.append(f"## {result.title}")
        if name not in found:
            parts.append(f"The paper's {result.published}. Not run: `twotower reproduce {name}` makes it.")
            continue
        data = found[name]
        made = f"{data['machine']['cpu']}, Python {data['machine']['python']}"
        parts.append(f"The paper's {data['published']}. `{data['command']}`, {data['date']}, {made}.")
        for table in data["tables"]:
            parts += [f"### {table['title']}", table_markdown(table), table["note"]]
        for figure in data["figures"]:
            if figure.endswith(".png"):
                parts.append(f"![{data['title']}](results/{name}/{figure})")
    return "\n\n".join(part for part in parts if part) + "\n"


def verdicts(data: Mapping[str, Any]) -> Iterator[str]:
    """Whether each row of a result's tables reproduces, differs, is undecided or was not run."""
    for table in data["tables"]:
        columns = [i for i, heading in enumerate(table["headings"]) if heading.startswith("verdict")]
        for row in table["rows"]:
            for column in columns:
                for said in row[column].split("; "):
                    yield from _judged(said)


def _judged(said: str) -> Iterator[str]:
    words = said.removeprefix("ITT ").removeprefix("IOT ").removeprefix("explicit ")
    if not words:
        return
    if "not run" in words:
        yield "not run"
    elif words.startswith(OPEN) or words.endswith("(cut)"):
        yield "undecided"
    else:
        yield "reproduces" if words.startswith(GOOD) or said.endswith("in both") else "differs"


def _summary(found: Mapping[str, Mapping[str, Any]]) -> str:
    """One row a result: how many of its verdicts are which."""
    rows = []
    for name in PAPERS:
        counts = Counter(verdicts(found[name])) if name in found else Counter({"not run": 1})
        result = experiments.get(name)
        link = f"[{name}](#{result.title.lower().replace(',', '').replace(' ', '-')})"
        numbers = [str(counts[kind] or "") for kind in ("reproduces", "differs", "undecided", "not run")]
        rows.append((link, result.published, *numbers))
    headings = ("result", "the paper's", "reproduces or better", "differs", "undecided", "not run")
    text = (
        "Verdicts counted, by the rules that stand under each table. *Undecided* are runs that were cut short, and "
        "cells for which the paper prints nothing to compare with."
    )
    return f"{table_markdown({'headings': headings, 'rows': rows})}\n\n{text}"


def _read(path: Path) -> dict[str, Any] | None:
    return json.loads(path.read_text()) if path.exists() else None


def main() -> None:
    """Write docs/results.md from results/, or with --check only say whether it is as it should be."""
    results, target = Path("results"), Path("docs/results.md")
    if not results.is_dir() or not target.parent.is_dir():
        raise UserError("Run this in the repository's root, where results/ and docs/ are.")
    text = page(results)
    if "--check" in sys.argv[1:]:
        sys.exit(target.read_text() != text)
    write_atomically(target, text.encode())


if __name__ == "__main__":
    main()
