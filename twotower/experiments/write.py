"""The folder of a result: data.json, table.md and the figures."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twotower.errors import UserError
from twotower.experiments.panels import save
from twotower.experiments.records import Finished, rounded
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.files.atomic import reason, write_atomically
from twotower.runs.versions import versions


def write(
    folder: Path,
    result: Result,
    evidence: Evidence,
    findings: Findings,
    command: str,
    failures: Mapping[str, str],
) -> None:
    """Write all of a result's files; those of an earlier command are replaced."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"Cannot make the folder {folder}: {reason(error)}.") from error
    figures = [name for stem, draw in findings.figures.items() for name in save(draw, folder / stem)]
    names = {run.planned.name for run in evidence.runs}
    made_with: list[dict[str, str]] = []  # a run's `made_with` is an index into these
    data = {
        "result": result.name,
        "title": result.title,
        "published": result.published,
        "command": command,
        "date": time.strftime("%Y-%m-%d"),
        "budget": evidence.choice.size,
        "machine": versions(),
        "made_with": made_with,
        "runs": [summary(run, made_with) for run in evidence.runs],
        "not_run": sorted({run.name for run in evidence.plan} - names),
        "failed": dict(failures),
        "tables": [_plain(table) for table in findings.tables],
        "figures": figures,
        "data": findings.data,
    }
    write_atomically(folder / "data.json", _json(data).encode())
    write_atomically(folder / "table.md", markdown(data).encode())


def summary(run: Finished, made_with: list[dict[str, str]]) -> dict[str, Any]:
    """What data.json says of a run, beside its record; versions not met before are added to `made_with`."""
    if run.policy.versions not in made_with:
        made_with.append(run.policy.versions)
    config, evaluation = run.policy.config, run.policy.evaluation
    assert evaluation is not None
    last = run.rows[-1]
    return {
        "name": run.planned.name,
        "record": f"runs/{run.name}.json",
        "task": config.task,
        "env_id": run.policy.spec.env_id,
        "backend": run.policy.spec.backend,
        "policy": config.policy.kind,
        "variant": run.planned.variant,
        "seed": config.seed,
        "iterations": run.iterations,
        "iterations_planned": run.planned.config.iterations,
        "directions": config.strategy.num_directions,
        "steps": run.policy.steps,
        "seconds": round(last["seconds"], 2),
        "workers": config.workers,
        "final_return": last["return"],
        "evaluation": {
            "mean": rounded(evaluation.mean), "std": rounded(evaluation.std), "episodes": len(evaluation.returns),
        },
        "made_with": made_with.index(run.policy.versions),
    }  # fmt: skip


def _json(data: dict[str, Any]) -> str:
    """Indented JSON with a line a run."""
    whole = json.dumps(data | {"runs": []}, indent=1, allow_nan=False)
    runs = ",\n  ".join(json.dumps(run, allow_nan=False) for run in data["runs"])
    return whole.replace('"runs": []', f'"runs": [\n  {runs}\n ]' if runs else '"runs": []', 1) + "\n"


def markdown(data: Mapping[str, Any]) -> str:
    """The tables of a result as Markdown, with the command that made them."""
    parts = [f"# {data['title']}", f"The paper's {data['published']}. `{data['command']}`, {data['date']}."]
    for table in data["tables"]:
        parts += [f"## {table['title']}", table_markdown(table)]
        parts += [table["note"]] if table["note"] else []
    parts += [f"![{name}]({name})" for name in data["figures"] if name.endswith(".png")]
    return "\n\n".join(parts) + "\n"


def table_markdown(table: Mapping[str, Any]) -> str:
    """One table as Markdown."""
    rows = [table["headings"], ["---"] * len(table["headings"]), *table["rows"]]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows)


def _plain(table: Table) -> dict[str, Any]:
    return {"title": table.title, "headings": table.headings, "rows": table.rows, "note": table.note}
