"""Training and serving with an index: the same policy as with exact search where it is exact, and honest where not."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import twotower as tt
from tests.command import sentence, twotower
from tests.training.runs import WORLD, new_folder, train_on, variant
from twotower.api import merged
from twotower.runs import Checkpoint, read_metrics

KEPT: dict[str, Any] = {"candidates": {"refresh": "rollout", "count": 300}}


def trained(path: Path, search: str, **options: Any) -> tuple[Checkpoint, list[dict[str, Any]]]:
    config = merged(variant("world", iterations=4), {**KEPT, "policy": {"search": search}, "search": options})
    folder = new_folder(config, path)
    train_on(folder)
    return Checkpoint.load(folder.checkpoint), read_metrics(folder.metrics)


def test_an_exact_index_trains_the_policy_that_brute_force_trains(tmp_path: Path) -> None:
    expected, rows = trained(tmp_path / "brute", "brute_force")
    tree, audited = trained(tmp_path / "tree", "box_tree", audit=0.5)
    assert np.array_equal(tree.theta, expected.theta)
    assert [row["search_regret"] for row in audited] == [0] * 4 and [row["search_recall"] for row in audited] == [1] * 4
    assert "search_regret" not in rows[0] and audited[0]["search_buckets"] == 0
    other, audited = trained(tmp_path / "srp", "srp", bits=3, budget=4, audit=1.0)
    assert not np.array_equal(other.theta, expected.theta)
    for row in audited:
        assert 0 < row["search_regret"] < row["search_worst_regret"] and 0 < row["search_recall"] < 1
        assert row["search_visited"] == 4 and row["search_audits"] > 20
        assert 0 < row["search_buckets"] <= 4


def test_a_coreset_learns_from_the_last_rollouts(tmp_path: Path) -> None:
    learnt, audited = trained(tmp_path / "learnt", "coreset", directions=1, audit=1.0)
    plain, blind = trained(tmp_path / "plain", "coreset", directions=1, queries=0, audit=1.0)
    assert learnt.queries.shape[0] > 20 and plain.queries.shape[0] == 0
    assert audited[0]["search_regret"] == blind[0]["search_regret"]  # nothing to learn from yet
    assert audited[3]["search_regret"] < 0.5 * blind[3]["search_regret"]


def test_a_policy_file_serves_with_what_its_search_learnt(tmp_path: Path) -> None:
    options: dict[str, Any] = {"iterations": 3, "seed": 5, "env": {"slots": 5}, "strategy": {"num_directions": 4}}
    chosen: dict[str, Any] = {"policy": {"search": "coreset"}, "search": {"directions": 1, "audit": 1.0}}
    run = tt.train(WORLD, progress=False, run_dir=str(tmp_path / "run"), **options, **KEPT, **chosen)
    recorded = run.policy.file.evaluation
    assert recorded is not None and len(run.policy.file.queries) > 20
    again, audit = tt.load(run.folder).evaluate_and_audit(20)
    assert again == recorded and audit is not None and audit.regret < 0.2
    _, exact = tt.load(run.folder, search="box_tree", audit=1.0).evaluate_and_audit(5)
    assert exact is not None and (exact.regret, exact.recall) == (0, 1)


def test_the_command_line_trains_with_one_search_and_serves_with_another(tmp_path: Path) -> None:
    pytest.importorskip("envpool")
    few = ("--iterations", "2", "--strategy.num-directions", "3", "--env.max-episode-steps", "20", "--plain")
    asked = ("--search", "srp", "--search.bits", "3", "--search.audit", "0.5", "--refresh", "rollout")
    shown = twotower("train", "hopper", *few, *asked, "--run-dir", "run", "--executor", "serial", cwd=tmp_path)
    assert "regret" in shown.stdout and "worst" in shown.stdout
    served = twotower("evaluate", "run", "--episodes", "3", cwd=tmp_path)
    assert "reproduced exactly" in served.stdout and "buckets scored a choice" in served.stdout
    served = twotower("evaluate", "run", "--episodes", "3", "--search.method", "box_tree", cwd=tmp_path)
    assert "episodes the same as served now" in served.stdout
    shared = ("--search", "hull", "--refresh", "fixed", "--candidates", "50", "--search.audit", "1", "--json")
    answer = json.loads(twotower("evaluate", "run", "--episodes", "3", *shared, cwd=tmp_path).stdout)
    assert answer["search"]["recall"] > 0.99 and len(answer["returns"]) == 3
    assert "is an option of srp" in sentence("evaluate", "run", "--search", "hull", "--search.bits", "3", cwd=tmp_path)
    assert "add --candidates.refresh rollout" in sentence("train", "hopper", "--search", "srp", cwd=tmp_path)
