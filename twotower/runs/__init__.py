"""What a run leaves on disk."""

from twotower.runs.checkpoint import Checkpoint
from twotower.runs.folder import RunFolder, load_policy_source
from twotower.runs.metrics import MetricsLog, read_metrics
from twotower.runs.policy_file import Evaluation, PolicyFile

__all__ = ["Checkpoint", "Evaluation", "MetricsLog", "PolicyFile", "RunFolder", "load_policy_source", "read_metrics"]
