"""Streams are named by what they are for, and the kernel's hashes are the reference's, bit for bit."""

import numpy as np
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from twotower.kernels import counter
from twotower.randomness import Domain, _mix, derive, extend, generator, hash32, unit_float

WORDS = st.integers(0, 2**64 - 1)
COUNTERS = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=20)


def test_the_streams_of_a_release_never_change() -> None:
    # Files that promise to reproduce a run depend on these bits.
    assert _mix(0) == 0xE220A8397B1DCDAF  # the first output of splitmix64 seeded with 0
    assert derive(7, Domain.CANDIDATES, 3) == 0x248FBCD82B3BBCBF
    assert hash32(np.arange(2, dtype=np.uint32), derive(7)).tolist() == [3555564527, 755721207]


@given(WORDS, st.lists(st.integers(-(2**63), 2**64 - 1), max_size=4), st.integers(0, 4))
def test_a_part_of_a_part_has_the_key_of_both_words(seed: int, words: list[int], cut: int) -> None:
    assert extend(derive(seed, *words[:cut]), *words[cut:]) == derive(seed, *words)
    assert 0 <= derive(seed, *words) < 2**64


def test_names_that_differ_have_keys_that_differ() -> None:
    names = [(a, *words) for a in range(9) for b in range(9) for c in range(9) for words in ((), (b,), (b, c))]
    assert len({derive(*name) for name in names}) == len(set(names))


def test_every_input_bit_flips_half_of_the_output() -> None:
    flips = np.array([[(derive(s) ^ derive(s ^ 1 << bit)).bit_count() for s in range(200)] for bit in range(64)])
    # 64 bits that flip with chance 1/2 average 32 with standard error 4/√200; 5 of them over 64 bits: below 4e-5.
    assert np.abs(flips.mean(axis=1) - 32).max() < 5 * 4 / np.sqrt(200)


@given(WORDS, WORDS)
def test_the_kernels_keys_are_the_references(key: int, word: int) -> None:
    assert int(counter.mix64(np.uint64(key))) == _mix(key)
    assert int(counter.subkey(np.uint64(key), np.uint64(word))) == extend(key, word)


@given(COUNTERS, WORDS)
def test_the_kernels_hash_is_the_references(counters: list[int], key: int) -> None:
    low, high = np.uint32(key & 0xFFFFFFFF), np.uint32(key >> 32)
    bits = [counter.hash32(np.uint32(c), low, high) for c in counters]
    expected = hash32(np.array(counters, np.uint32), key)
    assert bits == expected.tolist()
    assert [counter.unit_float(np.uint32(b)) for b in bits] == unit_float(expected).tolist()


def test_unit_floats_fill_the_interval_without_its_end() -> None:
    ends = unit_float(np.array([0, 255, 256, 2**32 - 1], np.uint32))
    assert ends.dtype == np.float32
    assert ends.tolist() == [0, 0, 2.0**-24, 1 - 2.0**-24]


def test_both_halves_of_the_key_count() -> None:
    counters = np.arange(1000, dtype=np.uint32)
    key = derive(3)
    for bit in (0, 15, 31, 32, 47, 63):
        flipped = np.bitwise_count(hash32(counters, key) ^ hash32(counters, key ^ 1 << bit))
        assert 12 < flipped.mean() < 20, bit  # half of 32 bits, more or less: the keys themselves are well mixed


def test_generators_are_uniform_and_their_own() -> None:
    draws = np.stack([generator(seed, domain).random(2000) for seed in range(3) for domain in (1, 2)])
    assert scipy.stats.kstest(draws.ravel(), "uniform").pvalue > 1e-4
    # 15 correlations of standard error 1/√2000, 5 of them: false alarm below 1e-5.
    assert np.abs(np.corrcoef(draws)[np.triu_indices(6, 1)]).max() < 5 / np.sqrt(2000)
    assert np.array_equal(generator(1, 2).random(5), generator(1, 2).random(5))
