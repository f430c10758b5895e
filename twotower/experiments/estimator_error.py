"""Mean squared errors of both estimators on quadratic functions: Monte Carlo, the right formula, the printed one."""

import numpy as np

from twotower.es import Antithetic, ForwardDifference, Strategy, StrategyState
from twotower.experiments.plan import Choice, Planned
from twotower.experiments.result import Evidence, Findings, Result, Table
from twotower.experiments.text import number

# D, M, σ: small and larger σ, fewer directions than dimensions, more dimensions.
CASES = ((4, 4, 0.1), (4, 4, 0.7), (4, 4, 2.0), (4, 2, 0.7), (10, 10, 0.7), (10, 5, 0.7))
DRAWS = {"quick": 2_000, "paper": 10_000}


def plan(choice: Choice) -> list[Planned]:
    """No training."""
    return []


def conclude(evidence: Evidence) -> Findings:
    """One row a case and estimator."""
    draws = DRAWS[evidence.choice.size]
    rows, data = [], []
    for dimension, directions, sigma in CASES:
        rng = np.random.default_rng([dimension, directions, round(10 * sigma)])
        gradient = rng.standard_normal(dimension)
        half = rng.standard_normal((dimension, dimension))
        hessian = (half + half.T) / 2
        for estimator in (Antithetic, ForwardDifference):
            name = "antithetic" if estimator is Antithetic else "forward difference"
            strategy = estimator(dimension, sigma=sigma, num_directions=directions, seed=1)
            mean, error = monte_carlo(strategy, gradient, hessian, draws)
            right, printed = formulas(name, dimension, directions, sigma, gradient, hessian)
            case = f"D = {dimension}, M = {directions}, σ = {sigma:g}"
            verdicts = [_within(formula, mean, error) for formula in (printed, right)]
            cells = (number(printed), f"{number(mean)} ± {number(error)}", number(right), *verdicts)
            rows.append((case, name, *cells))
            data.append({"case": case, "estimator": name, "measured": mean, "standard_error": error, "right": right,
                         "printed": printed})  # fmt: skip
    headings = ("case", "estimator", "formula, published", "ours, measured ± standard error", "formula, corrected",
                "verdict on the published", "verdict on the corrected")  # fmt: skip
    note = (
        f"{draws:,} estimates each, by the package's own estimators with orthogonal directions, of the gradient of one "
        "quadratic function with a random gradient and Hessian. Verdict: whether a formula lies within three standard "
        "errors. The erratum is derived in docs/errata.md."
    )
    return Findings([Table("Mean squared error of the estimators", headings, rows, note)], data={"cases": data})


def monte_carlo(strategy: Strategy, gradient: np.ndarray, hessian: np.ndarray, draws: int) -> tuple[float, float]:
    """The mean squared error around θ = 0, and its standard error."""
    errors = np.empty(draws)
    for k in range(draws):
        proposal = strategy.propose(StrategyState(np.zeros_like(gradient), k))
        rows = proposal.directions.rows(0, int(proposal.direction_of.max()) + 1)  # (M, D)
        # (members, D); θ itself has sign 0
        thetas = proposal.sigma * proposal.sign[:, None] * rows[np.maximum(proposal.direction_of, 0)]
        values = thetas @ gradient + 0.5 * np.einsum("mi,ij,mj->m", thetas, hessian, thetas)
        errors[k] = np.sum((strategy.gradient(proposal, values) - gradient) ** 2)
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(draws))


def formulas(
    name: str, dimension: int, directions: int, sigma: float, gradient: np.ndarray, hessian: np.ndarray
) -> tuple[float, float]:
    """The corrected and the printed mean squared error; ∇F_σ of a quadratic function is its gradient."""
    squared = float(gradient @ gradient)
    linear = (dimension + 2) / directions * squared - squared
    if name == "antithetic":
        return linear, linear
    frobenius, diagonal = float(np.sum(hessian**2)), float(np.sum(np.diag(hessian) ** 2))
    curved = (dimension + 4) * sigma**2 / (4 * directions) * (float(np.trace(hessian)) ** 2 + 2 * frobenius)
    printed = (dimension + 4) * sigma**4 / (4 * directions) * frobenius
    printed += (dimension + 2) * sigma**4 / directions * diagonal
    return linear + curved, linear + printed


def _within(formula: float, mean: float, error: float) -> str:
    return "holds" if abs(formula - mean) <= 3 * error else f"off by {formula / mean - 1:+.0%}"


RESULT = Result(
    "estimator-error", "Errors of the gradient estimators", "Lemma in the appendix", plan, conclude, extra_seconds=60
)
