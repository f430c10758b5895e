"""Seeing inside one decision: the candidates, their scores, the winner, and what the search looked at."""

from twotower.analysis.explain.decision import Decision, decide
from twotower.analysis.explain.picture import draw_decision

__all__ = ["Decision", "decide", "draw_decision"]
