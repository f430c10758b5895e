"""Training: assembles the parts and turns the crank."""

from twotower.recipes import task_config
from twotower.training.build import Experiment, build
from twotower.training.evaluate import evaluate_policy
from twotower.training.trained_policy import TrainedPolicy, load
from twotower.training.trainer import Trainer

__all__ = ["Experiment", "TrainedPolicy", "Trainer", "build", "evaluate_policy", "load", "task_config"]
