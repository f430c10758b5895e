"""Action search, usable alone on anybody's vectors."""

from twotower.search.base import Index
from twotower.search.brute_force import BruteForce
from twotower.search.corner import Corner

METHODS = {"brute_force": BruteForce, "corner": Corner}

__all__ = ["METHODS", "BruteForce", "Corner", "Index"]
