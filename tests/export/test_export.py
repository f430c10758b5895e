"""Exported policies act as the policies they were made from, in the real runtimes."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest

from tests.command import sentence, twotower
from tests.policy_files import untrained
from twotower.actions.base import DiscreteActions
from twotower.analysis.episode import offered, watch
from twotower.export import write_module, write_onnx
from twotower.policies import make_policy
from twotower.policies.base import ImplicitPolicy
from twotower.runs import PolicyFile
from twotower.training import TrainedPolicy

Options = dict[str, Any]
POLICIES: dict[str, tuple[str, Options]] = {
    "step": ("swimmer", {"candidates": {"count": 1000}}),
    "step, hidden layers": ("hopper", {"policy": {"state_hidden": (5,), "action_hidden": (7, 4), "latent": 3}}),
    "rollout, Sobol": ("halfcheetah", {"candidates": {"refresh": "rollout", "draw": "sobol", "count": 300}}),
    "fixed": ("hopper", {"candidates": {"refresh": "fixed", "count": 2000}, "policy": {"action_hidden": (8,)}}),
    "iteration, tanh": (
        "swimmer", {"candidates": {"refresh": "iteration"}, "policy": {"activation": "tanh", "state_hidden": (4,)}},
    ),
    "normalised": ("hopper", {"policy": {"normalise_observations": True}, "candidates": {"refresh": "fixed"}}),
    "corner": ("hopper", {"policy": {"search": "corner", "action_hidden": ()}}),
    "scalar actions": ("cartpole", {}),
    "one-hot actions": (
        "acrobot", {"candidates": {"encoding": "onehot"}, "policy": {"latent": 3, "action_hidden": (6,)}},
    ),
    "one tower": (
        "hopper", {"policy": {"kind": "iot", "hidden": (9, 5)}, "candidates": {"refresh": "fixed", "count": 700}},
    ),
    "one tower, one matrix": ("swimmer", {"policy": {"kind": "iot", "hidden": ()}}),
    "explicit": ("hopper", {"policy": {"kind": "explicit", "hidden": (6,)}}),
    "explicit, discrete": ("mountaincar", {"policy": {"kind": "explicit"}}),
}  # fmt: skip
SAMPLED: tuple[str, Options] = (
    "swimmer", {"policy": {"choice": "sample", "kernel": "softmax", "temperature": 0.3}, "candidates": {"count": 64}},
)  # fmt: skip


def acted(file: PolicyFile, observations: np.ndarray, episode: int = 0) -> np.ndarray:
    """The policy's own actions."""
    state = (np.array([episode]), np.array([0]))
    policy, actions = TrainedPolicy(file), []
    for observation in observations:
        action, state = policy.predict(observation, state)
        actions.append(action)
    return np.array(actions)


def raw(file: PolicyFile, episode: int = 0) -> np.ndarray:
    """The observations of an evaluation episode, as the environment gives them."""
    seen = watch(file, episode).observations
    return seen if file.normaliser is None else seen / file.normaliser.scale + file.normaliser.mean


def agree(file: PolicyFile, observations: np.ndarray, found: np.ndarray, wanted: np.ndarray) -> None:
    """The same actions, but where rounding alone decides between two candidates: their scores are then the same."""
    config, actions = file.config, file.spec.actions
    policy = make_policy(config.policy, config.candidates, file.spec.observation_size, actions)
    if not isinstance(policy, ImplicitPolicy) or config.policy.search == "corner":
        np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6)
        return
    different = [k for k in range(len(found)) if not np.array_equal(found[k], wanted[k])]
    assert len(different) <= len(found) // 50, different
    if config.policy.choice == "sample":
        return
    states = observations if file.normaliser is None else file.normaliser(observations)
    for k in different:
        pair = np.array([found[k], wanted[k]])
        encoded = policy.encoded_set(0)[pair - actions.first] if isinstance(actions, DiscreteActions) else pair
        scores = policy.scores(file.theta, states[k], encoded)
        assert abs(scores[0] - scores[1]) <= 1e-5 * np.abs(scores).max(), (k, pair, scores)


@pytest.mark.parametrize("name", POLICIES)
def test_onnx_acts_the_same(name: str, tmp_path: Path) -> None:
    file = untrained(*POLICIES[name])
    observations = raw(file)
    wanted = acted(file, observations)
    takes_candidates = write_onnx(file, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    assert [given.name for given in session.get_inputs()] == ["observation", "candidates"][: 1 + takes_candidates]
    assert takes_candidates == (name in ("step", "step, hidden layers", "rollout, Sobol", "one tower, one matrix"))
    if takes_candidates:
        policy = make_policy(file.config.policy, file.config.candidates, file.spec.observation_size, file.spec.actions)
        assert isinstance(policy, ImplicitPolicy)
        found = [
            session.run(["action"], {"observation": row[None], "candidates": offered(policy, file, 0, step)})[0][0]  # pyright: ignore
            for step, row in enumerate(observations)
        ]
    else:
        found = session.run(["action"], {"observation": observations})[0]
    found = np.array(found)
    assert found.dtype == wanted.dtype
    agree(file, observations, found, wanted)


@pytest.mark.parametrize("name", [*POLICIES, "sampled"])
def test_a_module_with_numpy_alone_acts_the_same(name: str, tmp_path: Path) -> None:
    file = untrained(*POLICIES.get(name, SAMPLED))
    write_module(file, tmp_path / "policy.py")
    script = (
        "import sys, json, numpy as np, policy\n"
        "actions = []\n"
        "for episode in range(2):\n"
        "    actions.append([np.asarray(policy.act(o)).tolist() for o in np.load(f'{episode}.npy')])\n"
        "    policy.reset()\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "assert not loaded & {'twotower', 'numba', 'scipy', 'gymnasium', 'safetensors', 'onnx'}, loaded\n"
        "print(json.dumps(actions))\n"
    )
    episodes = [raw(file, episode) for episode in range(2)]
    for episode, observations in enumerate(episodes):
        np.save(tmp_path / f"{episode}.npy", observations)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    for episode, found in enumerate(json.loads(done.stdout)):
        agree(file, episodes[episode], np.array(found), acted(file, episodes[episode], episode))


def test_ties_go_to_the_first(tmp_path: Path) -> None:
    file = untrained("acrobot", {})
    file = PolicyFile(np.zeros_like(file.theta), file.config, file.spec, 1, 1)
    write_onnx(file, tmp_path / "policy.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    action, scores = session.run(["action", "scores"], {"observation": np.ones((4, 6))})
    np.testing.assert_array_equal(action, 0)
    np.testing.assert_array_equal(scores, np.zeros((4, 3)))


def test_one_draw_can_be_put_into_the_graph(tmp_path: Path) -> None:
    file = untrained("swimmer", {})
    assert not write_onnx(file, tmp_path / "policy.onnx", fixed=True)
    session = onnxruntime.InferenceSession(tmp_path / "policy.onnx")
    observation = raw(file)[:1]
    np.testing.assert_array_equal(session.run(["action"], {"observation": observation})[0], acted(file, observation))


def test_the_command_and_its_refusals(tmp_path: Path) -> None:
    untrained("swimmer", {}).save(tmp_path / "policy.safetensors")
    done = twotower("export", "policy.safetensors", "--to", "onnx", cwd=tmp_path)
    assert "policy.onnx: takes observation, float64 (batch, 8) and candidates, float32 (N, a)" in done.stdout
    assert "policy.py: import it" in twotower("export", "policy.safetensors", "--out", "policy.py", cwd=tmp_path).stdout
    assert "Say what to export to" in sentence("export", "policy.safetensors", "--out", "policy.txt", cwd=tmp_path)
    assert "No such file" in sentence("export", "gone.safetensors", "--to", "onnx", cwd=tmp_path)
    assert "Cannot write gone" in sentence("export", "policy.safetensors", "--out", "gone/a.py", cwd=tmp_path)
    untrained(*SAMPLED).save(tmp_path / "sampled.safetensors")
    assert "use --to numpy" in sentence("export", "sampled.safetensors", "--to", "onnx", cwd=tmp_path)
    refined = untrained("swimmer", {"policy": {"refinements": 2}})
    refined.save(tmp_path / "refined.safetensors")
    assert "refinements cannot be exported" in sentence("export", "refined.safetensors", "--to", "numpy", cwd=tmp_path)
