"""Policies for programs without twotower: an ONNX graph, or a Python module that needs only NumPy."""

from twotower.export.module import write_module
from twotower.export.onnx_graph import write_onnx

__all__ = ["write_module", "write_onnx"]
