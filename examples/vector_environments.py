"""Drive many environments with one trained policy: batches of observations, episodes that end at different times."""

import gymnasium as gym
import numpy as np

import twotower as tt

ITERATIONS = 30
STEPS = 1000
ENVIRONMENTS = 8

policy = tt.train("cartpole", seed=1, iterations=ITERATIONS, progress=False).policy

envs = gym.make_vec(
    "CartPole-v1",
    num_envs=ENVIRONMENTS,
    vectorization_mode="sync",
    vector_kwargs={"autoreset_mode": gym.vector.AutoresetMode.SAME_STEP},
)
observations, _ = envs.reset(seed=0)
state, starts = None, np.ones(ENVIRONMENTS, bool)
returns, finished = np.zeros(ENVIRONMENTS), []
for _ in range(STEPS):
    # `state` counts each row's episodes and steps; `starts` says which rows begin a new episode.
    actions, state = policy.predict(observations, state, episode_start=starts)
    observations, rewards, terminated, truncated, _ = envs.step(actions)
    returns += rewards
    starts = terminated | truncated
    finished += returns[starts].tolist()
    returns[starts] = 0
print(f"{len(finished)} episodes, mean return {np.mean(finished or 0):.1f}")
