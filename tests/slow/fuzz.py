"""Damaged input by the hundred thousand: `python -m tests.slow.fuzz --cases 100000 --out results/faults/fuzz.json`.

Every case is read as a user's command would read it. It must load, and then be sound, or be refused by UserError,
within ten seconds of processor time and without memory far beyond its size. Cases are a function of the seed: a failure
can be replayed.
"""

import argparse
import contextlib
import io
import json
import signal
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tests.training.runs import new_folder, train_on, variant
from twotower import cli, completion
from twotower.config import TrainConfig, to_dict
from twotower.errors import UserError
from twotower.files import sealed_file
from twotower.files.atomic import write_atomically
from twotower.randomness import generator
from twotower.runs import Checkpoint, MetricsLog, PolicyFile, RunFolder, read_metrics
from twotower.search import METHODS
from twotower.search import load as load_index
from twotower.training import TrainedPolicy

SECONDS = 10.0
TRACED_EVERY = 20
SPARE_BYTES = 4_000_000  # for imports and caches that a first case fills
JUNK: list[Any] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x",
    "itt", "\0", "π" * 50, "{}", "[]", "../..", [], [1], [[]], {}, {"a": 1}, [None] * 5, "1e999", "9" * 5000,
]  # fmt: skip

TASKS = ["swimmer", "hopper", "World-v0", "dmc:x", "a:b", "runs/x", "all", "scores", "throughput", "search", ""]
WORDS = ["--help", "--", "-", "--seed", "--bogus", "--=", "True", "None", "1", "0.1", "-1", "1e-3", "auto", "itt", "\n"]
# What others' code does is theirs.
INDEXES = [name for name, method in METHODS.items() if method.__module__ != "twotower.search.peers"]


class Parsed(Exception):
    """A command line was understood, and would be carried out."""


class Case(Exception):
    """A case that broke a promise."""


def bytes_damaged(data: bytes, random: np.random.Generator) -> bytes:
    """Flipped bits, cuts, insertions, repetitions, or a huge number where a length was."""
    damaged = bytearray(data)
    for _ in range(int(random.integers(1, 4))):
        at = int(random.integers(0, len(damaged) + 1))
        size = int(random.integers(1, 9))
        match int(random.integers(6)):
            case 0:
                for place in random.integers(0, max(len(damaged), 1), size):
                    if place < len(damaged):
                        damaged[place] ^= 1 << int(random.integers(8))
            case 1:
                del damaged[at:]
            case 2:
                damaged[at:at] = random.bytes(size)
            case 3:
                del damaged[at : at + size * 10]
            case 4:
                damaged[at:at] = damaged[at : at + size * 10]
            case 5:
                damaged[at : at + size] = (b"\xff" * size, b"\0" * size, b"9" * size, b'"' * size)[size % 4]
    return bytes(damaged)


def data_damaged(value: Any, random: np.random.Generator) -> Any:
    """Plain data with one of its parts lost, renamed or replaced by something else."""
    if isinstance(value, dict) and value and random.random() < 0.9:
        name = str(random.choice(list(value)))
        kind = random.random()
        rest = {key: part for key, part in value.items() if key != name}
        if kind < 0.1:
            return rest
        if kind < 0.15:
            return rest | {name + "x": value[name]}
        return value | {name: data_damaged(value[name], random)}
    if isinstance(value, list) and value and random.random() < 0.7:
        at = int(random.integers(len(value)))
        return [*value[:at], data_damaged(value[at], random), *value[at + 1 :]]
    return JUNK[int(random.integers(len(JUNK)))]


class Targets:
    """What is read, from the files of one real run."""

    def __init__(self, path: Path) -> None:
        self.folder = new_folder(variant("world", policy={"normalise_observations": True}), path / "run")
        train_on(self.folder)
        file = PolicyFile.load(self.folder.policy)
        TrainedPolicy(file).predict(np.zeros(3))
        self.files = {file: file.read_bytes() for file in self.folder.path.glob("*.*")}
        self.policy = sealed_file.load(self.folder.policy, "policy")
        self.checkpoint = sealed_file.load(self.folder.checkpoint, "checkpoint")
        self.config = to_dict(self.folder.read_config())
        self.indexes = self._indexes(path)
        self.options = {command: dict(completion._options(cli.options_of(command))) for command in cli.COMMANDS}

    def config_file(self, random: np.random.Generator) -> int:
        """config.json, its bytes or its values."""
        whole = self.files[self.folder.config]
        text = json.dumps(data_damaged(self.config, random)).encode()
        data = bytes_damaged(whole, random) if random.random() < 0.3 else text
        self.folder.config.write_bytes(data)
        _expect(RunFolder(self.folder.path).read_config(), TrainConfig)
        return len(data)

    def policy_bytes(self, random: np.random.Generator) -> int:
        """A policy file with damaged bytes: loading them is always wrong."""
        return self._sealed(self.folder.policy, PolicyFile.load, random)

    def checkpoint_bytes(self, random: np.random.Generator) -> int:
        """A checkpoint with damaged bytes."""
        return self._sealed(self.folder.checkpoint, Checkpoint.load, random)

    def policy_contents(self, random: np.random.Generator) -> int:
        """A policy file whose checksum is right and whose contents are not."""
        tensors, text = dict(self.policy.tensors), self.policy.text
        if random.random() < 0.4:
            tensors = tensors_damaged(tensors, random)
        else:
            text = json.dumps(data_damaged(json.loads(text), random))
        sealed_file.save(self.folder.policy, "policy", tensors, text)
        size = self.folder.policy.stat().st_size
        file = PolicyFile.load(self.folder.policy)
        if not np.isfinite(file.theta).all() or file.theta.ndim != 1:
            raise Case("unsound θ")
        if file.config.candidates.count <= 10_000:  # a policy may ask for the memory of its candidates
            action, _ = TrainedPolicy(file).predict(np.zeros(file.spec.observation_size))
            if np.isnan(action).any():
                raise Case("an action that is no number")
        return size

    def checkpoint_contents(self, random: np.random.Generator) -> int:
        """A checkpoint whose checksum is right and whose arrays are not."""
        sealed_file.save(self.folder.checkpoint, "checkpoint", tensors_damaged(self.checkpoint.tensors, random))
        size = self.folder.checkpoint.stat().st_size
        if not Checkpoint.load(self.folder.checkpoint)._is_sound():
            raise Case("an unsound checkpoint")
        return size

    def metrics(self, random: np.random.Generator) -> int:
        """metrics.jsonl, read by reports and cut back by resume."""
        data = bytes_damaged(self.files[self.folder.metrics], random)
        self.folder.metrics.write_bytes(data)
        if random.random() < 0.3:
            MetricsLog(self.folder.metrics, int(random.integers(0, 2 * len(data) + 2))).close()
        if not all(isinstance(row, dict) for row in read_metrics(self.folder.metrics)):
            raise Case("a row that is no object")
        return len(data)

    def index_bytes(self, random: np.random.Generator) -> int:
        """A search index's file with damaged bytes."""
        return self._sealed(self.indexes[int(random.integers(len(INDEXES)))], load_index, random)

    def index_contents(self, random: np.random.Generator) -> int:
        """A search index's file whose checksum is right and whose numbers or options are not."""
        path = self.indexes[int(random.integers(len(INDEXES)))]
        path.write_bytes(self.files[path])
        tensors, text = sealed_file.load(path, "index")
        if random.random() < 0.4:
            tensors = tensors_damaged(tensors, random)
        else:
            text = json.dumps(data_damaged(json.loads(text), random))
        sealed_file.save(path, "index", tensors, text)
        size = path.stat().st_size
        index = load_index(path)
        if not 0 <= index.query(np.zeros(index.latents.shape[1])) < len(index):
            raise Case("a winner that is no candidate")
        return size

    def command_line(self, random: np.random.Generator) -> int:
        """The words after `twotower`, understood but not carried out."""
        command = str(random.choice(list(self.options)))
        arguments = self._arguments(command, random)
        said = io.StringIO()
        try:
            with parsing_only(), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = cli.run(command, arguments)
        except Parsed:
            code = 0
        except SystemExit as leaving:
            code = leaving.code
        if code not in (0, 2) or (code == 2 and not said.getvalue().strip()) or "Traceback" in said.getvalue():
            raise Case(f"exit code {code} for {command} {arguments}")
        if code == 2:
            raise UserError("explained by the parser")
        return SPARE_BYTES

    def _arguments(self, command: str, random: np.random.Generator) -> list[str]:
        """A few of the command's options and words, with values that suit or do not."""
        junk = [value if isinstance(value, str) else repr(value) for value in JUNK] + WORDS
        named = "swimmer" if random.random() < 0.5 else str(random.choice(TASKS))
        arguments = [named] if random.random() < 0.9 else []
        for _ in range(int(random.integers(0, 4))):
            option = str(random.choice(list(self.options[command])))
            good = [*self.options[command][option], "1", "2", "0.5", "True"]
            value = str(random.choice(good if random.random() < 0.7 else junk))
            match int(random.integers(25)):
                case 0:
                    arguments += [value]
                case 1:
                    arguments += [option]
                case 2:
                    arguments += [f"{option}={value}"]
                case 3:
                    at = int(random.integers(len(option)))
                    arguments += [option[:at] + option[at + 1 :], value]
                case _:
                    arguments += [option, value]
        return arguments

    def _indexes(self, path: Path) -> list[Path]:
        """A small index of every kind, in files."""
        latents = generator(0, 0).normal(size=(40, 3))
        files = [path / f"{name}.index" for name in INDEXES]
        for name, file in zip(INDEXES, files, strict=True):
            METHODS[name]().build(latents).save(file)
            load_index(file).query(latents[0])  # and with it, all kernels are compiled
        self.files |= {file: file.read_bytes() for file in files}
        return files

    def _sealed(self, path: Path, load: Callable[[Path], Any], random: np.random.Generator) -> int:
        whole = self.files[path]
        data = bytes_damaged(whole, random)
        path.write_bytes(data)
        load(path)
        if data != whole:
            raise Case("damaged bytes were loaded")
        return len(data)


def tensors_damaged(tensors: dict[str, np.ndarray], random: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays of which one is lost, renamed, of another shape or type, or holds what it should not."""
    name = str(random.choice(list(tensors)))
    array = tensors[name]
    rest = {key: value for key, value in tensors.items() if key != name}
    match int(random.integers(6)):
        case 0:
            return rest
        case 1:
            return rest | {name + "x": array}
        case 2:
            return tensors | {name: array.ravel()[: int(random.integers(0, array.size + 1))]}
        case 3:
            return tensors | {name: np.asarray(array).reshape((1,) * int(random.integers(1, 5)) + array.shape)}
        case 4:
            return tensors | {name: array.astype(np.float32 if array.dtype == np.float64 else np.float64)}
        case _:
            values = np.array(array, copy=True)
            bad = (
                random.choice([-1, -(2**62), 2**62])
                if array.dtype.kind == "i"
                else random.choice([np.nan, -np.inf, 1e308])
            )
            with np.errstate(over="ignore"):  # single precision makes it infinite
                values.reshape(-1)[: int(random.integers(0, values.size + 1))] = bad
            return tensors | {name: values}


@contextlib.contextmanager
def parsing_only() -> Iterator[None]:
    """Raise Parsed where a command would begin its work."""
    parse = cli._parse

    def carry_out(*arguments: Any, **options: Any) -> None:
        raise Parsed

    def parse_and_stop(options: Any, command: str, *rest: Any) -> Any:
        found = parse(options, command, *rest)
        return found if command in ("train", "tune") else carry_out()  # which parse more than once

    with (
        mock.patch("twotower.api.train", carry_out),
        mock.patch("twotower.tuning.folder.open_study", carry_out),
        mock.patch.object(cli, "_parse", parse_and_stop),
    ):
        yield


def _expect(value: Any, kind: type) -> None:
    if not isinstance(value, kind):
        raise Case(f"{value!r} is no {kind.__name__}")


@contextlib.contextmanager
def limited(traced: bool) -> Iterator[dict[str, int]]:
    """Raise after ten seconds of processor time, or ten times as long asleep; measure memory where asked to."""
    found = {"peak": 0}
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 10 * SECONDS)
    if traced:
        tracemalloc.start()
    try:
        yield found
    finally:
        for timer in (signal.ITIMER_PROF, signal.ITIMER_REAL):
            signal.setitimer(timer, 0)
        if traced:
            found["peak"] = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()


def fuzz(name: str, target: Callable[[np.random.Generator], int], cases: int, seed: int) -> dict[str, Any]:
    """How many cases loaded, how many were refused, and those that broke a promise."""
    loaded, refused, broken, worst, started = 0, 0, [], 0, time.monotonic()
    for number in range(cases):
        size = 0
        try:
            with limited(traced := number % TRACED_EVERY == 0) as memory:
                size = target(generator(seed, number))
            loaded += 1
        except UserError as error:
            refused += 1
            if "\n" in str(error).strip():
                broken.append([number, f"more than a sentence: {error}"])
        except Exception as error:
            broken.append([number, f"{type(error).__name__}: {error}"[:300]])
            print(name, *broken[-1], file=sys.stderr, flush=True)
        if traced and memory["peak"] > 50 * size + SPARE_BYTES:
            broken.append([number, f"{memory['peak']} bytes of memory for {size}"])
        worst = max(worst, memory["peak"])
        if number % 5000 == 4999:
            print(f"{name}: {number + 1} of {cases}, {len(broken)} broken", file=sys.stderr, flush=True)
    return {
        "target": name, "cases": cases, "loaded": loaded, "refused": refused, "broken": broken[:20],
        "broken_count": len(broken), "peak_traced_bytes": worst, "minutes": (time.monotonic() - started) / 60,
    }  # fmt: skip


# Parsing a command line takes a tenth of a second or three, so it gets a small share.
SHARES = {
    "config_file": 0.2, "policy_bytes": 0.12, "checkpoint_bytes": 0.12, "policy_contents": 0.12,
    "checkpoint_contents": 0.12, "metrics": 0.15, "index_bytes": 0.07, "index_contents": 0.07, "command_line": 0.03,
}  # fmt: skip


def table(rows: list[dict[str, Any]]) -> str:
    """The results as Markdown."""
    lines = [HEADINGS, ("---", *["---:"] * (len(HEADINGS) - 1))]
    for row in rows:
        counts = (row["cases"], row["loaded"], row["refused"], row["broken_count"])
        lines.append((WORDS_FOR[row["target"]], *(f"{count:,}" for count in counts)))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


HEADINGS = ("what was damaged", "cases", "loaded, soundly", "refused", "broken promises")
WORDS_FOR = {
    "config_file": "`config.json`, its bytes or its values",
    "policy_bytes": "policy files, damaged bytes",
    "checkpoint_bytes": "checkpoints, damaged bytes",
    "policy_contents": "policy files, wrong contents under a right checksum",
    "checkpoint_contents": "checkpoints, wrong contents under a right checksum",
    "metrics": "`metrics.jsonl`, damaged bytes",
    "index_bytes": "search indexes, damaged bytes",
    "index_contents": "search indexes, wrong contents under a right checksum",
    "command_line": "the words after `twotower`",
}


def _too_slow(*_: object) -> None:
    raise Case("it hung")


def main() -> None:
    """Fuzz every target, print, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--only", nargs="+", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("results/faults/fuzz.json"))
    options = parser.parse_args()
    for alarm in (signal.SIGPROF, signal.SIGALRM):
        signal.signal(alarm, _too_slow)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    rows = {row["target"]: row for row in (json.loads(options.out.read_text()) if options.out.exists() else [])}
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as path:
        targets = Targets(Path(path))
        for name in options.only:
            cases = int(np.ceil(options.cases * SHARES[name] / sum(SHARES[each] for each in options.only)))
            rows[name] = fuzz(name, getattr(targets, name), cases, options.seed)
            ordered = [rows[each] for each in SHARES if each in rows]
            write_atomically(options.out, (json.dumps(ordered, indent=2) + "\n").encode())
    print(table(list(rows.values())))
    sys.exit(any(row["broken_count"] for row in rows.values()))


if __name__ == "__main__":
    main()
