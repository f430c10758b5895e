"""How close training comes to the physics: `twotower bench throughput`.

A repetition trains whole iterations while recording their actions, makes exactly the same calls of the same
environments in the same processes again without a policy (the limit), then lets the machine step the task with
random actions (the ceiling). Training and replay are timed alike, from the coordinator, messages included.
"""

import contextlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from twotower.benchmarks.ceiling import ceiling_steps_per_s, make_ceiling
from twotower.benchmarks.memory import peak_memory_bytes, reset_peak
from twotower.benchmarks.options import ThroughputConfig
from twotower.benchmarks.recording import RecordingWorker
from twotower.benchmarks.report import make_folder, print_table, write_results
from twotower.benchmarks.summary import Repetition, summary
from twotower.config import TrainConfig
from twotower.envs import DiscreteActions
from twotower.rollout.executors import Executor, make_executor
from twotower.runs import MetricsLog, RunFolder, read_metrics
from twotower.runs.folder import load_policy_source
from twotower.runs.versions import versions
from twotower.training import Trainer, build

PHASES = ("ask", "rollouts", "tell")


class Training(NamedTuple):
    """A training whose iterations can be timed one by one."""

    trainer: Trainer
    executor: Executor
    log: MetricsLog

    def iterate(self) -> dict[str, float]:
        """One whole iteration, logging included; the seconds of each phase and of all."""
        started = time.perf_counter()
        row = self.trainer.iterate(self.executor)
        self.log.append(row)
        seconds = {phase: row[f"seconds_{phase}"] for phase in PHASES}
        total = time.perf_counter() - started
        return seconds | {"log": total - sum(seconds.values()), "iteration": total}


def main(options: ThroughputConfig) -> int:
    """Measure, print a table or JSON lines, write the results where asked to; 1 if a bar is missed."""
    results: list[dict[str, Any]] = []
    out = options.out or {"paper": "results/throughput", "search": "results/throughput-search"}.get(options.suite or "")
    if out:
        make_folder(Path(out))

    def report(result: dict[str, Any]) -> None:
        results.append(result)
        if out:  # after every case, so that a late failure costs nothing measured before
            write_results(Path(out), results, sys.argv[1:])
        if options.json:
            print(json.dumps(result), flush=True)

    run(options, report)
    if not options.json:
        print_table(results)
    return 0 if all(bar["passed"] for result in results for bar in result["bars"].values()) else 1


def run(options: ThroughputConfig, report: Callable[[dict[str, Any]], None] = lambda result: None) -> list[dict]:
    """Measure every case; `report` gets each result as soon as it is there."""
    cases = [(case, options.train_config(case)) for case in options.cases()]
    for _, config in cases:
        build(config)  # what cannot run is refused now, not after an hour of measuring the others
    results = []
    for case, config in cases:
        print(f"measuring {case.task}, {case.kind}, {config.env.backend} …", file=sys.stderr, flush=True)
        result = measure(config, options)
        first = results[0] if results else result
        result["train_to_first"] = result["train_steps_per_s"] / first["train_steps_per_s"]
        results.append(result | {"bars": case.verdicts(result)})
        report(results[-1])
    return results


def measure(config: TrainConfig, options: ThroughputConfig) -> dict[str, Any]:
    """The result of one case, ready for JSON."""
    reset_peak()
    with start_training(config, options.policy_file) as training:
        _warm_up(training, options)
        warmup_iterations = training.trainer.checkpoint.iteration
        memory = peak_memory_bytes()  # before anything is recorded
        with make_ceiling(config, training.trainer.experiment.spec) as ceiling:
            repetitions = [
                Repetition(*measure_training(training, options.seconds), ceiling_steps_per_s(ceiling, options.seconds))
                for _ in range(options.repetitions)
            ]
        facts = _facts(training)
    return facts | summary(repetitions) | {
        "warmup_iterations": warmup_iterations,
        "peak_memory_bytes": memory,
        "versions": versions(),
        "date": time.strftime("%Y-%m-%d"),
    }  # fmt: skip


@contextlib.contextmanager
def start_training(config: TrainConfig, policy_file: str | None) -> Iterator[Training]:
    """A training in a folder that goes away, with workers that can record; from the parameters of a file, if named."""
    experiment = build(config)
    with tempfile.TemporaryDirectory() as path:
        trainer = Trainer(experiment, RunFolder(Path(path)))
        if policy_file:
            theta = load_policy_source(policy_file).theta
            experiment.policy.check_theta(theta)
            trainer.checkpoint = trainer.checkpoint._replace(theta=theta)
        with contextlib.closing(MetricsLog(trainer.folder.metrics)) as log:
            with make_executor(config, experiment.spec, trainer.num_members, RecordingWorker) as executor:
                yield Training(trainer, executor, log)


def _warm_up(training: Training, options: ThroughputConfig) -> None:
    """Compile, fill caches, and leave θ₀, whose episodes can be far shorter than those of most iterations."""
    deadline = time.perf_counter() + options.warmup_seconds
    for _ in range(options.warmup_iterations or 2):
        training.iterate()
    while options.warmup_iterations is None and time.perf_counter() < deadline:
        training.iterate()


def measure_training(training: Training, seconds: float) -> tuple[int, list[dict[str, float]], list[float]]:
    """Train for at least `seconds`, then replay: steps, seconds of the iterations, seconds of the replays."""
    executor, before = training.executor, training.trainer.checkpoint.steps
    executor.call("record")
    iterations: list[dict[str, float]] = []
    while sum(iteration["iteration"] for iteration in iterations) < seconds:
        iterations.append(training.iterate())
    replays = []
    for number in range(len(iterations)):
        executor.call("rewind", number)
        started = time.perf_counter()
        executor.call("replay", number)
        replays.append(time.perf_counter() - started)
    steps = sum(sum(executor.call("check", number)) for number in range(len(iterations)))
    assert steps == training.trainer.checkpoint.steps - before, "the recorders missed steps"
    return steps, iterations, replays


def _facts(training: Training) -> dict[str, Any]:
    """What was measured."""
    trainer = training.trainer
    config, spec, policy, _ = trainer.experiment
    offered = spec.actions.count if isinstance(spec.actions, DiscreteActions) else config.candidates.count
    implicit = config.policy.kind != "explicit"
    last = read_metrics(trainer.folder.metrics)[-1]
    return {
        "task": config.task,
        "env_id": spec.env_id,
        "backend": spec.backend,
        "policy": config.policy.kind,
        "parameters": policy.num_params,
        "candidates": offered if implicit else None,
        "refresh": config.candidates.refresh if implicit else None,
        "search": config.policy.search if implicit else None,
        "executor": config.executor,
        "workers": len(training.executor.call("record")),
        "slots": trainer.num_slots,
        "members": trainer.num_members,
        "bytes_out": last["bytes_out"],
        "bytes_back": last["bytes_back"],
    }
