"""Export to one ONNX graph: normaliser, state tower, candidates, scores and argmax."""

from pathlib import Path
from typing import Any

import numpy as np

from twotower.errors import UserError
from twotower.export import standalone
from twotower.export.facts import Facts, facts_of
from twotower.files.atomic import write_atomically
from twotower.runs import PolicyFile

OPSET = 17  # the oldest with all that is used and still read by every current runtime
ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh"}


def write_onnx(file: PolicyFile, path: str | Path, fixed: bool = False) -> bool:
    """Write the graph; whether it takes its candidates as an input.

    It does where they are redrawn at every step or rollout, unless `fixed` puts one draw into the graph.
    """
    try:
        import onnx
        from onnx import TensorProto, helper
    except ImportError as error:
        raise UserError('Export to ONNX needs the package onnx; run: pip install "twotower[onnx]"') from error
    facts = facts_of(file)
    if facts.get("sample"):
        raise UserError("Policies with --policy.choice sample draw noise, which a graph cannot: use --to numpy.")
    if fixed and facts["refresh"] != "kept":
        episode = standalone.extend(facts["key"], 1)
        key = standalone.extend(episode, 0) if facts["refresh"] == "step" else episode
        facts |= {"refresh": "kept", "candidates": standalone.draw(facts, key)}
    offered = facts["refresh"] != "kept"
    graph = Graph(facts)
    size = file.spec.observation_size
    inputs = [helper.make_tensor_value_info("observation", TensorProto.DOUBLE, ["batch", size])]
    if offered:
        shape = ["candidates", len(facts["low"])]
        inputs.append(helper.make_tensor_value_info("candidates", TensorProto.FLOAT, shape))
    discrete = facts["discrete"] > 0
    kind, shape = (TensorProto.INT64, ["batch"]) if discrete else (TensorProto.FLOAT, ["batch", len(facts["low"])])
    outputs = [helper.make_tensor_value_info("action", kind, shape)]
    if graph.build():
        outputs.append(helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", None]))
    model = helper.make_model(
        helper.make_graph(graph.nodes, f"{file.config.policy.kind} policy", inputs, outputs, graph.constants),
        producer_name="twotower",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=8,
    )
    helper.set_model_props(model, {"env_id": file.spec.env_id, "task": file.config.task})
    onnx.checker.check_model(model, full_check=True)
    write_atomically(Path(path), model.SerializeToString())
    return offered


class Graph:
    """The nodes and constants of a policy's graph, in the order they are computed."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def build(self) -> bool:
        """From `observation` to `action`; whether there are `scores`."""
        facts, towers = self.facts, self.facts["towers"]
        state = "observation"
        if facts["mean"] is not None:
            state = self.add("Mul", self.add("Sub", state, self.constant(facts["mean"])), self.constant(facts["scale"]))
        if facts["kind"] == "explicit":
            self._explicit(self.forward(towers[0], state))
            return False
        if facts["kind"] == "iot":
            size = towers[0][0].shape[1] - self._inputs()
            query = self.single(self.dense(state, towers[0][0][:, :size]))  # (batch, hidden)
        else:
            query = self.single(self.dense(self.forward(towers[0], state), towers[1][-1].T))
        if facts["corner"]:
            sign = self.double(self.add("Sign", query))
            self._scaled(self.add("Mul", self.add("Add", sign, self.constant(1.0)), self.constant(0.5)))
            return False
        candidates = "candidates" if facts["refresh"] != "kept" else self.constant(facts["candidates"])
        features = candidates
        for matrix in towers[1][:-1] if facts["kind"] == "itt" else [towers[0][0][:, -self._inputs() :]]:
            features = self.single(self.dense(self.double(features), matrix))
            features = self.activate(features) if facts["kind"] == "itt" else features
        self._choose(self._one_tower(features, query) if facts["kind"] == "iot" else self._dot(features, query))
        return True

    def _inputs(self) -> int:
        """Numbers in an encoded candidate."""
        candidates = self.facts["candidates"]
        return len(self.facts["low"]) if candidates is None else candidates.shape[1]

    def _dot(self, features: str, query: str) -> str:
        """Scores (batch, N), correctly rounded to 32 bits."""
        transposed = self.add("Transpose", self.double(features), perm=[1, 0])
        return self.single(self.add("MatMul", self.double(query), transposed), "scores")

    def _one_tower(self, features: str, query: str) -> str:
        """Scores (batch, N) of a network whose first layer is the sum of a part of the state and one of the action."""
        query = self.add("Unsqueeze", query, self.constant(np.array([1])))
        values = self.add("Add", query, features)  # (batch, N, hidden)
        for matrix in self.facts["towers"][0][1:]:
            values = self.single(self.dense(self.double(self.activate(values)), matrix))
        return self.add("Squeeze", values, self.constant(np.array([2])), out="scores")

    def _choose(self, scores: str) -> None:
        """The first of the best candidates, as the action."""
        best = self.add("ArgMax", scores, axis=1, keepdims=0, select_last_index=0)
        if self.facts["discrete"]:
            self.add("Add", best, self.constant(np.array(self.facts["first"], np.int64)), out="action")
            return
        candidates = "candidates" if self.facts["refresh"] != "kept" else self.constant(self.facts["candidates"])
        self.add("Gather", candidates, best, out="action", axis=0)

    def _explicit(self, output: str) -> None:
        """tanh spread over the box, or binned over the indices."""
        unit = self.add("Mul", self.add("Add", self.add("Tanh", output), self.constant(1.0)), self.constant(0.5))
        if not self.facts["discrete"]:
            self._scaled(unit)
            return
        from onnx import TensorProto

        count = self.facts["discrete"]
        binned = self.add("Floor", self.add("Mul", unit, self.constant(float(count))))
        binned = self.add("Min", binned, self.constant(float(count - 1)))
        index = self.add("Squeeze", self.add("Cast", binned, to=TensorProto.INT64), self.constant(np.array([1])))
        self.add("Add", index, self.constant(np.array(self.facts["first"])), out="action")

    def _scaled(self, unit: str) -> None:
        """Numbers in [0, 1] spread over the box."""
        spread = self.add("Mul", self.double(unit), self.constant(self.facts["span"].astype(np.float64)))
        self.single(self.add("Add", spread, self.constant(self.facts["low"].astype(np.float64))), "action")

    def forward(self, tower: list[np.ndarray], values: str) -> str:
        """A network in 64 bits."""
        for matrix in tower[:-1]:
            values = self.activate(self.dense(values, matrix))
        return self.dense(values, tower[-1])

    def dense(self, values: str, matrix: np.ndarray) -> str:
        return self.add("MatMul", values, self.constant(np.ascontiguousarray(matrix.T, np.float64)))

    def activate(self, values: str) -> str:
        name = ACTIVATIONS.get(self.facts["activation"])
        return self.add(name, values) if name else values

    def single(self, values: str, out: str | None = None) -> str:
        from onnx import TensorProto

        return self.add("Cast", values, out=out, to=TensorProto.FLOAT)

    def double(self, values: str) -> str:
        from onnx import TensorProto

        return self.add("Cast", values, to=TensorProto.DOUBLE)

    def constant(self, value: Any) -> str:
        """A named constant."""
        from onnx import numpy_helper

        name = f"constant_{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(value, order="C"), name))
        return name

    def add(self, operation: str, *inputs: str, out: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        out = out or f"{operation.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operation, list(inputs), [out], **attributes))
        return out
