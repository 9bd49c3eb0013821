"""Laws of probability and of queues, computed here from their formulas with numpy alone.

Limits are for an error of about one in ten thousand (`ERROR`) for each row. Streams follow from their seeds, so a row that
holds once holds always; the error says how likely a right implementation is refused for its seed.
"""

import decimal
import functools
import math

import numpy as np

ERROR = 1e-4
NORMAL = 3.891  # 1 - ERROR of a normal law lies within so many deviations


def chi_squared_bounds(freedom):
    """What 1 - ERROR of a chi-squared law lies between, after Wilson and Hilferty (a little wider than exact)."""
    part = 2 / (9 * freedom)
    return tuple(freedom * max(1 - part + z * math.sqrt(part), 0) ** 3 for z in (-NORMAL, NORMAL))


def dispersion(times, begin, end, window):
    """Variance over mean of counts in windows of [begin, end): (index, windows)."""
    windows = int((end - begin) // window)
    inside = times[(times >= begin) & (times < begin + windows * window)]
    counts = np.bincount(((inside - begin) // window).astype(np.int64), minlength=windows)
    return (counts.var(ddof=1) / counts.mean() if windows > 1 and counts.mean() > 0 else math.nan), windows


def dispersion_bounds(windows, mean=math.inf):
    """Between what the index of Poisson counts lies, for so many windows.

    (windows - 1) * index is chi-squared for counts with a large mean. Counts of a small mean scatter more: the variance
    of the index is (2 + 1 / mean) / windows, and a normal law is close because there are many such windows.
    """
    low, high = (bound / (windows - 1) for bound in chi_squared_bounds(windows - 1))
    more = NORMAL * (math.sqrt((2 + 1 / mean) / windows) - math.sqrt(2 / windows)) if mean < 10 else 0
    return low - more, high + more


def kolmogorov(sample, law):
    """The largest distance between a sample's distribution and a law (a vectorised distribution function)."""
    at = law(np.sort(sample))
    n = len(at)
    return max((np.arange(1, n + 1) / n - at).max(), (at - np.arange(n) / n).max())


def kolmogorov_limit(n):
    """Distance that a sample of a known law exceeds with the probability ERROR: 2 exp(-2 n d²) = ERROR."""
    return math.sqrt(-math.log(ERROR / 2) / 2 / n)


@functools.cache
def fitted_limit(n=400, samples=40_000):
    """sqrt(n) times the distance that exponential samples exceed, with their own mean for the law's, with the probability
    ERROR (Lilliefors); from samples, since there is no formula. From some hundreds on it does not depend on n."""
    rng = np.random.default_rng(1)
    drawn = np.sort(rng.exponential(size=(samples, n)), axis=1)
    at = -np.expm1(-drawn / drawn.mean(axis=1, keepdims=True))
    far = np.maximum((np.arange(1, n + 1) / n - at).max(axis=1), (at - np.arange(n) / n).max(axis=1))
    return float(np.quantile(far, 1 - ERROR)) * math.sqrt(n)


def exponential(mean):
    return lambda x: -np.expm1(-np.maximum(x, 0) / mean)


def uniform(low, high):
    return lambda x: np.clip((x - low) / (high - low), 0, 1)


def normal(mean, deviation):
    erf = np.vectorize(math.erf)
    return lambda x: (1 + erf((x - mean) / deviation / math.sqrt(2))) / 2


def log_normal(mean, deviation):
    """Mean and deviation are of the result, not of its logarithm."""
    spread = math.log(1 + (deviation / mean) ** 2)
    logarithm = normal(math.log(mean) - spread / 2, math.sqrt(spread))
    return lambda x: logarithm(np.log(np.maximum(x, 1e-300)))


# Student's law.


def student_distribution(t, freedom):
    """P(T <= t), by Simpson's rule over the density in the angle arctan(t / sqrt(freedom)), where it is cos^(freedom - 1)."""
    angles = np.linspace(-math.pi / 2, math.pi / 2, 20_001)
    heights = np.cos(angles) ** (freedom - 1)
    end = math.atan(t / math.sqrt(freedom))
    upto = np.linspace(-math.pi / 2, end, 20_001)
    return simpson(np.cos(upto) ** (freedom - 1), upto) / simpson(heights, angles)


def simpson(heights, at):
    step = at[1] - at[0]
    return step / 3 * (heights[0] + heights[-1] + 4 * heights[1:-1:2].sum() + 2 * heights[2:-1:2].sum())


@functools.cache
def student_quantile(share, freedom):
    low, high = -1e4, 1e4
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_distribution(middle, freedom) < share else (low, middle)
    return (low + high) / 2


# Queues with one server, in the order of arrival, and a service of constant length.


def waits(times, service):
    """How long each arrival waits (Lindley): W' = max(0, W + service - gap), which is the walk less its lowest so far."""
    steps = service - np.diff(times)
    walk = np.concatenate([[0.0], np.cumsum(steps)])
    return walk - np.minimum.accumulate(walk)


def md1_mean_wait(load, service):
    """Pollaczek and Khinchin."""
    return load * service / (2 * (1 - load))


def md1_waits_at_most(x, load, service):
    """Erlang's (1909) sum for P(wait <= x) of M/D/1. Its terms alternate and are large, so it has a hundred digits."""
    with decimal.localcontext() as context:
        context.prec = 100
        rate, total = decimal.Decimal(load) / decimal.Decimal(service), decimal.Decimal(0)
        for k in range(int(x // service) + 1):
            part = rate * (decimal.Decimal(k) * decimal.Decimal(service) - decimal.Decimal(x))
            total += part**k / math.factorial(k) * (-part).exp() if k else (-part).exp()
        return float((1 - decimal.Decimal(load)) * total)


def md1_quantile(share, load, service):
    low, high = 0.0, 200 * service
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if md1_waits_at_most(middle, load, service) < share else (low, middle)
    return (low + high) / 2
