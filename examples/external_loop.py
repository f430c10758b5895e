"""Use the strategies in a loop of your own: ask for parameters, tell what they returned."""

import gymnasium as gym
import numpy as np

import twotower as tt

ITERATIONS = 30
EPISODES = 5

envs = gym.make_vec("CartPole-v1", num_envs=EPISODES)


def mean_return(theta, seed):
    """The mean return of a linear policy over parallel episodes."""
    observations, _ = envs.reset(seed=seed)
    total, running = 0.0, np.ones(EPISODES, bool)
    while running.any():
        actions = (observations @ theta > 0).astype(int)
        observations, rewards, terminated, truncated, _ = envs.step(actions)
        total += rewards[running].sum()
        running &= ~(terminated | truncated)
    return total / EPISODES


strategy = tt.es.Antithetic(4, sigma=0.5, step_size=0.5, num_directions=4, shaping="ranks", seed=0)
for iteration in range(ITERATIONS):
    returns = [mean_return(theta, seed=iteration) for theta in strategy.ask()]
    told = strategy.tell(returns)  # higher is better
    if iteration % 5 == 0:
        print(f"iteration {iteration}: mean return {np.mean(returns):.1f}, gradient {told.gradient_norm:.2f}")
print(f"the mean parameters return {mean_return(strategy.theta, seed=12345):.1f} of 500")
