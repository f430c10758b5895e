"""Training: assembles the parts and turns the crank."""

from twotower.train.build import Experiment, build, task_config
from twotower.train.evaluate import evaluate_policy
from twotower.train.trainer import Trainer

__all__ = ["Experiment", "Trainer", "build", "evaluate_policy", "task_config"]
