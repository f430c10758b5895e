"""Workers as Ray actors, over all nodes of a cluster; the only file that imports Ray."""

import os
import pickle
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from typing import Any, final

import numpy as np
import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from twotower.config import TrainConfig
from twotower.envs.base import EnvSpec
from twotower.errors import UserError
from twotower.rollout.base import Setup
from twotower.rollout.elastic import LOOKS, Died, Elastic
from twotower.rollout.host import Host
from twotower.rollout.ray_session import Session

PULSE_SECONDS = 2.0  # at most, to wait for pulses; a stopped process never sends one


class Actor:
    """A worker's host in a process that Ray started; `pulse` is answered while `answer` works."""

    def __init__(self, setup: bytes, paths: list[str]) -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is the coordinator's to handle
        # Where `module:Env-v0` is found on the coordinator, as far as it is there on this node.
        sys.path += [path for path in paths if path not in sys.path and os.path.isdir(path)]
        self._host = Host(pickle.loads(setup), np.zeros(1, np.int64))

    def answer(self, share: int, shares: int, message: bytes) -> bytes:
        """As the host."""
        return self._host.answer(share, shares, message)

    def pid(self) -> int:
        """The number of the process, on its node."""
        return os.getpid()

    @ray.method(concurrency_group="pulse")
    def pulse(self) -> int:
        """How many steps the worker has made."""
        return int(self._host.pulse[0])


# They take no CPU from Ray's accounts: a successor must never queue for the core of the dead.
OPTIONS: dict[str, Any] = {"num_cpus": 0, "max_restarts": 0, "max_task_retries": 0, "concurrency_groups": {"pulse": 1}}
REMOTE = ray.remote(**OPTIONS)(Actor)


class Member:
    """An actor, the node it was meant for, and what it owes."""

    def __init__(self, node: str, setup: Any) -> None:
        self.node = node
        # Soft: if the node is gone, any other will do until the next call.
        where = NodeAffinitySchedulingStrategy(node, soft=True)
        self.actor: Any = REMOTE.options(scheduling_strategy=where).remote(setup, sys.path)
        self.owed: Any = None

    def pulse(self) -> Any:
        """A reference to the pulse."""
        return self.actor.pulse.remote()

    def end(self) -> None:
        """Kill the actor, even a stopped one."""
        ray.kill(self.actor)


@final
class Ray(Elastic):
    """One actor a core of the cluster, or as many as asked; nodes may come and go.

    Between calls the slots are shared anew if the cluster has changed: what a slot answers does not depend
    on who owns it. A message goes through the object store once, and from there once to every node.
    """

    def __init__(self, config: TrainConfig, spec: EnvSpec, streams: tuple[int, ...], worker_class: type) -> None:
        super().__init__(config.worker_timeout)
        self._asked = config.workers
        self._most = len(streams)
        self._session = Session(config.ray.address, config.workers)
        self._setup = ray.put(pickle.dumps(Setup(worker_class, config, spec, streams)))
        self.members: list[Member] = []

    def close(self) -> None:
        for member in self.members:
            member.end()
        self.members = []
        self._session.close()

    def _recruit(self) -> int:
        missing = Counter(self._places())
        stay: list[Member] = []
        for member in self.members:
            if missing[member.node]:
                missing[member.node] -= 1
                stay.append(member)
            else:
                member.end()
        self.members = stay + [Member(node, self._setup) for node in missing.elements()]
        return len(self.members)

    def _places(self) -> list[str]:
        """The node of every worker: all nodes' first cores, then their second ones, and so on."""
        alive = [node for node in ray.nodes() if node["Alive"]]
        cores = sorted((core, node["NodeID"]) for node in alive for core in range(int(node["Resources"].get("CPU", 0))))
        if not cores:
            raise UserError(
                f"No node of {self._session.name} offers a CPU, so training stopped at a checkpoint: start nodes with "
                "ray start --address=HOST:PORT, or resume with --executor processes."
            )
        count = min(self._asked or len(cores), self._most)
        return [cores[number % len(cores)][1] for number in range(count)]

    def _pack(self, pickled: bytes) -> Any:
        return ray.put(pickled)

    def _post(self, share: int, message: Any) -> None:
        member = self.members[share]
        member.owed = member.actor.answer.remote(share, len(self.members), message)

    def _collect(self, waiting: list[int], seconds: float) -> Iterator[tuple[int, bytes | Died]]:
        share_of = {self.members[share].owed: share for share in waiting}
        ready, _ = ray.wait(list(share_of), timeout=seconds)
        for owed in ready:
            try:
                yield share_of[owed], ray.get(owed)
            except RayError as error:
                yield share_of[owed], Died(_last_line(error))

    def _pulses(self, waiting: list[int]) -> dict[int, int]:
        asked = {self.members[share].pulse(): share for share in waiting}
        ready, _ = ray.wait(list(asked), num_returns=len(asked), timeout=min(PULSE_SECONDS, self.timeout / LOOKS))
        pulses = dict.fromkeys(waiting, -1)
        for pulse in ready:
            try:
                pulses[asked[pulse]] = ray.get(pulse)
            except RayError:
                continue  # `_collect` says more
        return pulses

    def _replace(self, share: int) -> None:
        self.members[share].end()
        self.members[share] = Member(self.members[share].node, self._setup)


def _last_line(error: RayError) -> str:
    """Ray's messages end with what happened."""
    return str(error).strip().splitlines()[-1].strip().rstrip(".")
