"""Every environment backend keeps the same promises: the slot decides the episodes, whoever runs them."""

import importlib.util

import numpy as np
import pytest

from twotower.config import EnvConfig
from twotower.envs import BACKENDS, BoxActions, EnvBatch, SlotSeeds, inspect, make_batch
from twotower.randomness import derive, generator

NUMBERS = (0, 1, 2, 3, 4, 5)
CASES = {
    "hopper": ("Hopper-v4", EnvConfig(backend="envpool")),
    "cartpole": ("CartPole-v1", EnvConfig(backend="envpool")),
    "lunarlander": ("LunarLanderContinuous-v2", EnvConfig(backend="envpool", max_episode_steps=60)),
    "fish": ("dmc:fish-swim", EnvConfig(backend="envpool", max_episode_steps=12)),
    "gymnasium cartpole": ("CartPole-v1", EnvConfig(backend="gymnasium")),
    "gymnasium pendulum": ("Pendulum-v1", EnvConfig(backend="gymnasium", max_episode_steps=12)),
    "gymnasium lunarlander": ("LunarLanderContinuous-v3", EnvConfig(backend="gymnasium", max_episode_steps=60)),
    "dm_control fish": ("dmc:fish-swim", EnvConfig(backend="dm_control", max_episode_steps=12)),
}


class Player:
    """Plays episodes on a batch with actions that depend on (slot number, episode, step) alone."""

    def __init__(self, case: str, numbers: tuple[int, ...] = NUMBERS, seed: int = 0) -> None:
        env_id, env = CASES[case]
        if not BACKENDS[env.backend].installed:
            pytest.skip(f"{env.backend} is not installed")
        if "lunarlander" in case and env.backend == "gymnasium" and importlib.util.find_spec("Box2D") is None:
            pytest.skip("Box2D is not installed")
        self.spec = inspect(env, env_id)
        self.numbers, self.seed = numbers, seed
        self.batch: EnvBatch = make_batch(env, self.spec, SlotSeeds(seed, numbers))

    def begin(self, iteration: int, episodes: list[int]) -> None:
        self.batch.begin(iteration, np.array(episodes))
        self.counts = list(episodes)

    def play(self, episodes: list[int], most_steps: int = 10**9) -> list[list[bytes]]:
        """Let slot i play `episodes[i]` more episodes; what every slot saw, step by step."""
        goals = [count + more for count, more in zip(self.counts, episodes, strict=True)]
        seen: list[list[bytes]] = [[] for _ in self.numbers]
        steps = [-1] * len(self.numbers)  # -1: the episode has yet to start
        while most_steps and (live := [i for i, goal in enumerate(goals) if self.counts[i] < goal]):
            most_steps -= 1
            starting = np.array([steps[i] < 0 for i in live])
            actions = np.stack([self._action(i, steps[i]) for i in live])
            seeds = np.array([derive(self.seed, self.numbers[i], self.counts[i]) >> 1 for i in live])
            answer = self.batch.advance(np.array(live, np.int32), actions, starting, seeds)
            assert answer.observations.shape == (len(live), self.spec.observation_size)
            assert [part.dtype for part in answer] == [np.float64, np.float64, np.bool_]
            assert answer.observations.flags.c_contiguous and np.isfinite(answer.observations).all()
            assert not answer.rewards[starting].any() and not answer.dones[starting].any()
            for row, i in enumerate(live):
                seen[i].append(b"".join(part[row].tobytes() for part in answer))
                steps[i] = -1 if answer.dones[row] else steps[i] + 1
                self.counts[i] += bool(answer.dones[row])
        return seen

    def _action(self, slot: int, step: int) -> np.ndarray:
        random, space = generator(self.seed, self.numbers[slot], self.counts[slot], step + 1), self.spec.actions
        if isinstance(space, BoxActions):
            return random.uniform(space.low, space.high)
        return np.asarray(random.integers(space.count))


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    return request.param


def test_a_slot_plays_the_same_episodes_in_any_batch(case: str) -> None:
    whole = Player(case)
    whole.begin(0, [0] * 6)
    seen = whole.play([2] * 6)
    assert len(set(map(tuple, seen))) == 6
    for numbers in ((0, 2, 4), (1, 3, 5)):
        half = Player(case, numbers)
        half.begin(0, [0] * 3)
        assert half.play([2] * 3) == [seen[number] for number in numbers]


def test_slots_of_one_number_start_alike(case: str) -> None:
    player = Player(case, (3, 3, 1))
    player.begin(0, [0] * 3)
    first, twin, other = player.play([2] * 3)
    assert first == twin
    assert first[0] != other[0]


def test_a_fresh_batch_goes_on_where_another_stopped(case: str) -> None:
    played = [0, 1, 2, 0, 3, 1]
    old, fresh = Player(case), Player(case)
    counts = [0] * 6 if old.batch.reseed_every == 1 else played
    old.begin(0, [0] * 6)
    old.play(played)
    old.begin(1, counts)
    fresh.begin(1, counts)
    seen = old.play([2] * 6)
    assert fresh.play([2] * 6) == seen
    fresh.begin(1, counts)  # has run more episodes than that
    assert fresh.play([2] * 6) == seen


def test_an_episode_left_in_the_middle_is_as_good_as_run() -> None:
    left, fresh = Player("hopper"), Player("hopper")
    left.begin(0, [0] * 6)
    left.play([1] * 6, most_steps=3)
    for player in (left, fresh):
        player.begin(0, [1] * 6)
    assert left.play([1] * 6) == fresh.play([1] * 6)


def test_counting_on_twice_is_counting_on_once() -> None:
    once, twice = Player("hopper"), Player("hopper")
    once.begin(2, [3] * 6)
    twice.begin(1, [1] * 6)
    twice.begin(2, [3] * 6)
    assert once.play([1] * 6) == twice.play([1] * 6)


@pytest.mark.parametrize("case", ["hopper", "cartpole", "lunarlander", "fish"])
def test_streams_change_with_seed_and_epoch(case: str) -> None:
    starts = set()
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        player = Player(case, (0, 1), seed)
        player.begin(epoch * player.batch.reseed_every, [0, 0])
        starts |= {slot[0] for slot in player.play([1, 1], most_steps=1)}
    assert len(starts) == 6


def test_a_slot_that_plays_cannot_start() -> None:
    player = Player("hopper")
    player.begin(0, [0] * 6)
    player.play([1] * 6, most_steps=2)
    slots = np.arange(6, dtype=np.int32)
    with pytest.raises(AssertionError, match="a slot starts"):
        player.batch.advance(slots, np.zeros((6, 3)), np.ones(6, np.bool_), slots)
