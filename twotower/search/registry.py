"""The indexes by name, and reading them from files."""

import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

from twotower.errors import UserError
from twotower.files import sealed_file
from twotower.search.auto import Auto
from twotower.search.base import Index
from twotower.search.box_tree import BoxTree
from twotower.search.brute_force import BruteForce
from twotower.search.directional_coreset import DirectionalCoreset
from twotower.search.hull import Hull
from twotower.search.lazy_gumbel import LazyGumbel
from twotower.search.partitions import Partitions
from twotower.search.peers import Faiss, HnswLib, ScaNN, USearch
from twotower.search.random_feature_tree import RandomFeatureTree
from twotower.search.signed_random_projections import (
    NormRangingProjections,
    PaperSignedRandomProjections,
    SignedRandomProjections,
)

METHODS: dict[str, type[Index]] = {
    method.name: method
    for method in (
        Auto,
        BruteForce,
        BoxTree,
        DirectionalCoreset,
        Hull,
        Partitions,
        SignedRandomProjections,
        NormRangingProjections,
        PaperSignedRandomProjections,
        RandomFeatureTree,
        LazyGumbel,
        Faiss,
        HnswLib,
        ScaNN,
        USearch,
    )
}

MOST = 2**20  # directions, features or samples that a file may ask for, if its latents are no more


def load(path: str | Path) -> Index:
    """The index that `save` wrote, built again: the same answers, with nothing in the file to trust but numbers."""
    tensors, text = sealed_file.load(Path(path), "index")
    try:
        facts = json.loads(text)
        latents = tensors.pop("latents")
        if any(isinstance(value, int) and value > max(MOST, len(latents)) for value in facts["options"].values()):
            raise ValueError  # a file of a few bytes must not ask for gigabytes
        method, options = METHODS[facts["method"]], facts["options"]
        hints = get_type_hints(method)
        if any(isinstance(value, float) and not _takes_fractions(hints[name]) for name, value in options.items()):
            raise ValueError
        return method(**options, **tensors).build(latents, facts["seed"])
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise UserError(f"{path} does not describe an index of this version: build and save it again.") from error


def _takes_fractions(hint: Any) -> bool:
    return float in (hint, *get_args(hint))
