"""Action search, usable alone on anybody's vectors."""

from twotower.search.auto import Auto, Choice, choose
from twotower.search.base import Index
from twotower.search.box_tree import BoxTree
from twotower.search.brute_force import BruteForce
from twotower.search.corner import Corner
from twotower.search.directional_coreset import DirectionalCoreset
from twotower.search.hull import Hull
from twotower.search.lazy_gumbel import LazyGumbel
from twotower.search.partitions import Partitions
from twotower.search.peers import Faiss, HnswLib, ScaNN, USearch
from twotower.search.random_feature_tree import RandomFeatureTree
from twotower.search.registry import METHODS, load
from twotower.search.signed_random_projections import (
    NormRangingProjections,
    PaperSignedRandomProjections,
    SignedRandomProjections,
)

__all__ = [
    "METHODS",
    "Auto",
    "BoxTree",
    "BruteForce",
    "Choice",
    "Corner",
    "DirectionalCoreset",
    "Faiss",
    "HnswLib",
    "Hull",
    "Index",
    "LazyGumbel",
    "NormRangingProjections",
    "PaperSignedRandomProjections",
    "Partitions",
    "RandomFeatureTree",
    "ScaNN",
    "SignedRandomProjections",
    "USearch",
    "choose",
    "load",
]
