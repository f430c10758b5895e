"""The benchmark's numbers: what they count, how they are summed up, and that all are reported."""

import contextlib
import io
import json
import subprocess
import sys

import numpy as np
import pytest

from twotower.benchmarks import BENCHMARKS, ceiling, report, throughput
from twotower.benchmarks.ceiling import CeilingWorker
from twotower.benchmarks.memory import peak_memory_bytes
from twotower.benchmarks.options import ThroughputConfig
from twotower.benchmarks.suite import PAPER, Case
from twotower.benchmarks.summary import Repetition, spread, summary
from twotower.benchmarks.throughput import start_training
from twotower.config import EnvConfig, TrainConfig
from twotower.envs import inspect
from twotower.errors import UserError
from twotower.recipes import names
from twotower.runs import PolicyFile

FIELDS = {
    "task", "env_id", "backend", "policy", "parameters", "candidates", "refresh", "search", "executor", "workers",
    "slots", "members", "limit_steps_per_s", "train_steps_per_s", "ratio", "ceiling_steps_per_s", "ratio_to_ceiling",
    "bytes_out", "bytes_back", "train_to_first", "spread", "repetitions", "iterations_measured", "steps_measured",
    "phase_seconds",
    "warmup_iterations", "peak_memory_bytes", "versions", "date", "bars",
}  # fmt: skip


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """One short measurement through the command's function: its exit code, output and folder."""
    folder = tmp_path_factory.mktemp("results") / "new"
    options = ThroughputConfig(
        ("cartpole",),
        executor="serial",
        repetitions=3,
        seconds=0.05,
        warmup_iterations=2,
        out=str(folder),
        json=True,
    )
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = BENCHMARKS["throughput"][1](options)
    return code, [*err.getvalue().splitlines(), *out.getvalue().splitlines()], folder


def test_json_has_all_fields_on_one_line_a_task(measured):
    code, lines, folder = measured
    assert code == 0 and lines[0] == "measuring cartpole, itt, auto …" and len(lines) == 2
    result = json.loads(lines[1])
    assert set(result) == FIELDS
    facts = [result[name] for name in ("task", "policy", "candidates", "refresh", "workers", "slots", "members")]
    assert facts == ["cartpole", "itt", 2, "step", 1, 13, 13]
    assert (result["repetitions"], result["warmup_iterations"]) == (3, 2)
    assert result["limit_steps_per_s"] > 1000 < result["train_steps_per_s"] and result["ceiling_steps_per_s"] > 10_000
    assert set(result["phase_seconds"]) == {"ask", "rollouts", "tell", "log", "iteration", "replay"}
    assert result["iterations_measured"] >= 3 and result["steps_measured"] >= 3 * 13
    assert 50e6 < result["peak_memory_bytes"] < 4e9
    assert json.loads((folder / "results.json").read_text()) == [result]


def test_tables_show_each_result_with_its_bars(measured, capsys):
    _, lines, folder = measured
    result = json.loads(lines[1])
    assert "| cartpole<br>itt, 2 / step<br>envpool<br>serial, 0 / 0 |" in (folder / "README.md").read_text()
    case = Case("cartpole", at_least=(("ratio", 0.8),), at_most=(("peak_memory_bytes", 4e9),))
    result["ratio"] = 0.5
    report.print_table([result | {"bars": case.verdicts(result)}])
    printed = capsys.readouterr().out
    assert "≥ 0.8 ✗" in printed and "≤ 4 ✓" in printed and f"{result['train_steps_per_s']:,.0f}" in printed


def test_a_missed_bar_is_an_exit_code(monkeypatch):
    for passed in (True, False):
        result = {"bars": {"ratio": {"at_least": 0.8, "passed": passed}}}
        monkeypatch.setattr(throughput, "run", lambda options, report, result=result: report(result))
        assert throughput.main(ThroughputConfig(("cartpole",), json=True)) == (0 if passed else 1)


def test_spread_is_the_median_the_quartiles_and_the_extremes():
    values = {"minimum": 1.0, "lower_quartile": 2.0, "median": 3.0, "upper_quartile": 4.0, "maximum": 100.0}
    assert spread([100.0, 1.0, 4.0, 3.0, 2.0]) == values


def test_ratios_compare_within_a_repetition():
    # The machine halves its speed after the first repetition; training takes twice the replay's time throughout.
    repetitions = [
        Repetition(100, [{"ask": 0.1 * slow, "iteration": 1.0 * slow}] * 2, [0.5 * slow] * 2, 400.0 / slow)
        for slow in (1, 2, 2)
    ]
    result = summary(repetitions)
    assert (result["train_steps_per_s"], result["limit_steps_per_s"], result["ceiling_steps_per_s"]) == (25, 50, 200)
    assert (result["ratio"], result["ratio_to_ceiling"]) == (0.5, 0.125)
    assert result["spread"]["ratio"]["minimum"] == result["spread"]["ratio"]["maximum"] == 0.5
    assert result["spread"]["train_steps_per_s"]["maximum"] == 50
    assert result["phase_seconds"] == {"ask": 0.2, "iteration": 2.0, "replay": 1.0}
    assert (result["steps_measured"], result["iterations_measured"], result["repetitions"]) == (300, 6, 3)


@pytest.mark.parametrize(("env_id", "backend"), [("CartPole-v1", "envpool"), ("CartPole-v1", "gymnasium")])
def test_the_ceiling_counts_steps_and_not_resets(env_id, backend):
    env = EnvConfig(backend=backend, max_episode_steps=1)  # every step ends an episode
    config = TrainConfig(env_id, env=env)
    worker = CeilingWorker(config, inspect(env, env_id), tuple(range(4)), tuple(range(4)))
    step, calls = worker._step, []
    worker._step = lambda actions: calls.append(actions.shape) or step(actions)
    steps, seconds = worker.run(0.02)
    assert seconds >= 0.02 and set(calls) == {(4,)} and len(calls) > 3
    # EnvPool spends every other call on resets; the loop resets by itself.
    assert steps == 4 * ((len(calls) + 1) // 2 if backend == "envpool" else len(calls))


def test_the_ceiling_adds_up_its_processes():
    class Two:
        def call(self, method, seconds):
            assert (method, seconds) == ("run", 0.5)
            return [(100, 0.5), (90, 0.6)]

    assert ceiling.ceiling_steps_per_s(Two(), 0.5) == pytest.approx(350.0)  # pyright: ignore[reportArgumentType]


def test_peak_memory_counts_descendants_and_remembers_the_peak():
    before = peak_memory_bytes()
    program = "import sys; x = b'x' * 100_000_000; del x; print(flush=True); sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    after = peak_memory_bytes()
    child.communicate()
    assert before is not None and after is not None and after - before > 100_000_000


def test_the_suite_is_what_must_be_shown():
    bars = {(case.task, case.kind, case.backend): dict(case.at_least + case.at_most) for case in PAPER}
    assert {task for task, _, _ in bars} <= set(names())
    assert bars["halfcheetah", "itt", "auto"] == {"ratio": 0.85, "ratio_to_ceiling": 0.75, "peak_memory_bytes": 1.5e9}
    assert bars["halfcheetah", "iot", "auto"] == {"ratio": 0.6}
    assert bars["halfcheetah", "itt", "gymnasium"] == {"ratio": 0.8}
    options = ThroughputConfig(suite="paper", workers=2)
    for case in options.cases():
        assert options.train_config(case).policy.kind == case.kind
        assert options.train_config(case).env.backend == case.backend


def test_bars_are_judged():
    case = Case("swimmer", at_least=(("ratio", 0.8),), at_most=(("peak_memory_bytes", 10.0),))
    verdicts = case.verdicts({"ratio": 0.8, "peak_memory_bytes": 11})
    assert verdicts["ratio"] == {"at_least": 0.8, "passed": True}
    assert verdicts["peak_memory_bytes"] == {"at_most": 10.0, "passed": False}
    assert not case.verdicts({"ratio": 0.79, "peak_memory_bytes": None})["ratio"]["passed"]
    assert not case.verdicts({"ratio": 0.79, "peak_memory_bytes": None})["peak_memory_bytes"]["passed"]


def test_options_override_the_recipe_and_nothing_else():
    default = ThroughputConfig(("fish-swim",))
    config = default.train_config(default.cases()[0])
    assert (config.candidates.count, config.candidates.refresh, config.env.slots) == (10_000, "iteration", 64)
    options = ThroughputConfig(
        ("hopper",), kind="itt", candidates=5, refresh="rollout", search="corner", backend="gymnasium", slots=7, seed=3
    )
    config = options.train_config(options.cases()[0])
    assert (config.candidates.count, config.candidates.refresh, config.policy.search) == (5, "rollout", "corner")
    assert (config.env.backend, config.env.slots, config.seed) == ("gymnasium", 7, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "Name tasks"),
        ({"tasks": ("hopper",), "suite": "paper"}, "not both"),
        ({"suite": "paper", "backend": "gymnasium"}, "leave out --kind and --backend"),
        ({"tasks": ("hopper",), "repetitions": 0}, "--repetitions must be at least 1"),
        ({"tasks": ("hopper",), "warmup_iterations": 0}, "--warmup-iterations must be at least 1"),
        ({"tasks": ("hopper",), "seconds": float("nan")}, "--seconds must be"),
        ({"tasks": ("hopper",), "warmup_seconds": float("inf")}, "--warmup-seconds must be"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        ThroughputConfig(**options)


def test_a_folder_that_cannot_be_made_is_refused_before_anything_is_measured(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setattr(throughput, "run", lambda *_: pytest.fail("measured"))
    with pytest.raises(UserError, match="Cannot make the folder"):
        throughput.main(ThroughputConfig(("hopper",), out=str(tmp_path / "file" / "results")))


def test_training_starts_from_the_parameters_of_a_file(tmp_path):
    options = ThroughputConfig(("cartpole",), executor="serial")
    config = options.train_config(options.cases()[0])
    spec = inspect(config.env, "CartPole-v1")
    for theta in (np.arange(6.0), np.arange(7.0)):
        PolicyFile(theta, config, spec, 0, 0).save(tmp_path / f"{theta.size}")
    with start_training(config, str(tmp_path / "6")) as training:
        assert training.trainer.checkpoint.theta.tolist() == [0, 1, 2, 3, 4, 5]
        first = training.trainer.iterate(training.executor)["return"]
    with start_training(config, None) as training:
        assert training.trainer.iterate(training.executor)["return"] != first
    with pytest.raises(UserError, match="take 6 parameters"), start_training(config, str(tmp_path / "7")):
        pass


def test_every_task_is_looked_up_before_any_is_measured(monkeypatch):
    monkeypatch.setattr(throughput, "measure", lambda *_: pytest.fail("measured"))
    with pytest.raises(UserError, match="CartPool"):
        throughput.run(ThroughputConfig(("cartpole", "CartPool-v1")))
