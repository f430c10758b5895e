"""Export to one Python file that needs nothing but NumPy."""

import base64
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from twotower.export.facts import facts_of
from twotower.files.atomic import write_atomically
from twotower.runs import PolicyFile

FEW = 64  # numbers up to which an array is written in digits


def write_module(file: PolicyFile, path: str | Path) -> None:
    """Write a module with act(observation) and reset(), which acts as the policy does in its evaluation."""
    source = files("twotower.export").joinpath("standalone.py").read_text()
    evaluated = f", {file.evaluation.mean:.2f} on average in its evaluation" if file.evaluation else ""
    head = (
        f'"""A {file.config.policy.kind} policy for {file.spec.env_id}, made by twotower{evaluated}.\n\n'
        "    import policy                       # this file\n"
        "    policy.reset()                      # before every episode but the first\n"
        f"    action = policy.act(observation)    # of {file.spec.observation_size} numbers\n"
    )
    body = source.split("\n\n", 1)[1]  # without the source's own docstring's first sentence
    facts = "".join(f"    {name!r}: {_literal(value)},\n" for name, value in facts_of(file).items())
    tail = f"\n\n_policy = Policy({{\n{facts}}})\nact, reset = _policy.act, _policy.reset\n"
    write_atomically(Path(path), (f"{head}\n{body}{tail}").encode())


def _literal(value: Any) -> str:
    """A value as Python source."""
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if not isinstance(value, np.ndarray):
        return repr(value)
    if value.size <= FEW and value.dtype.kind == "f":
        return f"np.array({value.tolist()!r}, np.{value.dtype})"
    packed = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return f"_packed({packed!r}, np.{value.dtype}, {', '.join(map(str, value.shape))})"
