"""What `twotower export` takes, and what it prints."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from twotower.errors import UserError
from twotower.export import write_module, write_onnx
from twotower.runs import load_policy_source

SUFFIXES = {".onnx": "onnx", ".py": "numpy"}


@dataclass(frozen=True)
class ExportOptions:
    """Write a trained policy as a program for elsewhere: an ONNX graph, or a module that needs only NumPy."""

    policy: Positional[str]
    """A run's folder or a policy file."""
    to: Literal["onnx", "numpy"] | None = None
    """The format; None takes it from the name of the file."""
    out: str | None = None
    """The .onnx or .py file to write; None writes policy.onnx or policy.py beside the policy."""
    fixed: bool = False
    """ONNX: put one draw of the candidates into the graph where the policy draws new ones at every step or rollout."""


def export(options: ExportOptions) -> int:
    """Write the file and say how to use it."""
    file, source = load_policy_source(options.policy), Path(options.policy)
    to = options.to or (SUFFIXES.get(Path(options.out).suffix) if options.out else None)
    if to is None:
        raise UserError("Say what to export to: --to onnx or --to numpy, or an --out that ends in .onnx or .py.")
    if options.fixed and to != "onnx":
        raise UserError("--fixed is for --to onnx: a NumPy module draws the policy's candidates itself.")
    beside = source if source.is_dir() else source.parent
    out = Path(options.out) if options.out else beside / ("policy.onnx" if to == "onnx" else "policy.py")
    size = file.spec.observation_size
    if to == "numpy":
        write_module(file, out)
        print(f"{out}: import it, then act(observation) for {size} numbers; reset() before every further episode")
        return 0
    offered = write_onnx(file, out, options.fixed)
    print(f"{out}: takes observation, float64 (batch, {size}){' and candidates, float32 (N, a)' if offered else ''}")
    if offered:
        print("This policy draws new candidates as it goes, so the caller draws them; --fixed puts one draw inside.")
    return 0
