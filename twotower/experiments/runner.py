"""A process that trains one run after another as it is told, so that Python and kernels load once.

Each line of standard input is a job: a configuration whose run_dir is the run's folder. Each line of standard output
tells how a job ended. When standard input closes, whoever asked is gone, and the run stops at its next iteration.
"""

import json
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import Any

from twotower import api
from twotower.config import TrainConfig, from_dict
from twotower.errors import UserError
from twotower.runs import RunFolder


def main() -> None:
    """Train what comes in until there is no more."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    jobs: queue.Queue[dict[str, Any] | None] = queue.Queue()
    threading.Thread(target=_listen, args=(jobs,), daemon=True).start()
    try:
        while (job := jobs.get()) is not None:
            print(json.dumps(work(from_dict(TrainConfig, job))), file=answers)
    except (KeyboardInterrupt, BrokenPipeError):
        pass


def work(config: TrainConfig) -> dict[str, Any]:
    """Train a run, or go on with it, and tell how it ended."""
    assert config.run_dir is not None
    try:
        if RunFolder(Path(config.run_dir)).config.exists():
            run = api.resume(config.run_dir, progress=False, workers=config.workers, executor=config.executor)
        else:
            run = api.train(config, progress=False)
    except UserError as error:
        return {"failed": str(error)}
    return {"stopped": run.stopped_by is not None}


def _listen(jobs: "queue.Queue[dict[str, Any] | None]") -> None:
    for line in sys.stdin:
        jobs.put(json.loads(line))
    jobs.put(None)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))  # between runs; training has its own
    main()
