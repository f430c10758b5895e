"""Readers fuzzed by coverage: `pip install atheris && python -m tests.slow.guided CORPUS -max_total_time=600`.

Damaged bytes rarely pass a checksum, so here it always holds: what is tried is the reading of headers, tensors, facts
and log lines. CORPUS is a folder that starts with one file of each kind; options are libFuzzer's.
"""

import re
import sys
import tempfile
from pathlib import Path

import atheris  # pyright: ignore[reportMissingImports]

with atheris.instrument_imports(include=["json", "twotower.files", "twotower.runs"]):
    from twotower.files import sealed_file
    from twotower.runs import PolicyFile, metrics

from tests.training.runs import new_folder, train_on, variant
from twotower.errors import UserError

SEAL = "0" * 64


def seed(corpus: Path) -> None:
    """A policy file and a log in the corpus, each behind a byte that says which it is."""
    corpus.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as path:
        folder = new_folder(variant("world", policy={"normalise_observations": True}), Path(path) / "run")
        train_on(folder)
        policy = re.sub(rb'"checksum": "[0-9a-f]{64}"', f'"checksum": "{SEAL}"'.encode(), folder.policy.read_bytes())
        (corpus / "policy").write_bytes(b"\0" + policy)
        (corpus / "metrics").write_bytes(b"\xff" + folder.metrics.read_bytes())


def main() -> None:
    """Fuzz until told to stop; anything but a UserError of one sentence ends it."""
    seed(Path(sys.argv[1]))
    sealed_file._checksum = lambda *parts: SEAL
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        path = Path(folder) / "case"

        def read(data: bytes) -> None:
            path.write_bytes(data[1:])
            try:
                PolicyFile.load(path) if data[:1] < b"\x80" else metrics.read_metrics(path)
            except UserError as error:
                assert "\n" not in str(error).strip()

        atheris.Setup(sys.argv, read)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
