"""Train in an environment of your own: any Gymnasium environment in a module that Python can import."""

import gymnasium as gym
import numpy as np

import twotower as tt

ITERATIONS = 60


class Reach(gym.Env):
    """A point in the unit square moves to a target; the reward is minus the distance."""

    observation_space = gym.spaces.Box(-1.0, 1.0, (4,), np.float32)
    action_space = gym.spaces.Box(-1.0, 1.0, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.point, self.target = self.np_random.uniform(-1, 1, (2, 2))
        self.steps = 0
        return self.look(), {}

    def step(self, action):
        self.point = np.clip(self.point + 0.2 * action, -1, 1)
        self.steps += 1
        reward = -float(np.linalg.norm(self.point - self.target))
        return self.look(), reward, False, self.steps == 20, {}

    def look(self):
        return np.concatenate([self.point, self.target]).astype(np.float32)


if "Reach-v0" not in gym.registry:
    gym.register("Reach-v0", Reach)

if __name__ == "__main__":
    # Workers import the module of this name, hence module:id and not the id alone.
    run = tt.train("custom_environment:Reach-v0", iterations=ITERATIONS, strategy={"sigma": 0.3, "step_size": 0.05})
    evaluation = run.policy.evaluate(100)
    print(f"a mean return of {evaluation.mean:.1f} ± {evaluation.std:.1f} over 100 fresh episodes")
