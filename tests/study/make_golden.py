#!/usr/bin/env python3
"""Prints the golden numbers of rank_test_test.cc, computed by SciPy (pip install scipy).

The exact distribution with ties is that of scipy.stats.permutation_test over all divisions of the
values. Hodges and Lehmann's interval is the one that belongs to the exact test, found by brute
force: the shifts d for which the test of x + d against y has p > alpha."""
import itertools

import numpy
import scipy
from scipy import stats

CASES = {
    "small": ([1.1, 2.5, 0.7, 3.3, 2.9], [2.0, 4.1, 5.7, 3.9]),
    "separate": ([1, 2, 3, 4, 5, 6, 7, 8], [11, 12, 13, 14, 15, 16, 17]),
    "ties": ([1, 2, 2, 3, 5], [2, 3, 4, 4, 5, 5]),
    "equal": ([3, 3, 3], [3, 3, 3, 3]),
}


def lcg(seed, count, levels):
    """The pseudo-random values of the test: a linear congruential generator, modulo `levels`."""
    values = []
    for _ in range(count):
        seed = (seed * 1103515245 + 12345) % 2**31
        values.append((seed >> 8) % levels)
    return values


def exact(x, y):
    def statistic(a, b, axis=0):
        return stats.mannwhitneyu(a, b, method="asymptotic", axis=axis).statistic
    if len(set(x) | set(y)) == len(x) + len(y):
        return stats.mannwhitneyu(x, y, method="exact").pvalue
    return stats.permutation_test((x, y), statistic, permutation_type="independent",
                                  n_resamples=10**6, vectorized=True).pvalue


def main():
    print("scipy", scipy.__version__)
    for name, (x, y) in CASES.items():
        u = stats.mannwhitneyu(x, y).statistic
        print(name, "U", u, "p", repr(float(exact(x, y))))
    x, y = lcg(1, 50, 97), [v + 6 for v in lcg(2, 40, 97)]
    result = stats.mannwhitneyu(x, y, method="asymptotic")
    print("normal with ties U", result.statistic, "p", repr(float(result.pvalue)))
    x, y = CASES["small"]
    print("small differences, sorted",
          sorted(round(b - a, 6) for a, b in itertools.product(x, y)),
          "median", numpy.median([b - a for a, b in itertools.product(x, y)]))
    for alpha in (0.05, 0.2):
        inside = [d for d in numpy.arange(-3, 6, 0.01) + 0.005
                  if exact([a + d for a in x], y) > alpha]
        print("interval", alpha, round(inside[0] - 0.005, 2), round(inside[-1] + 0.005, 2))
    print("holm of 0.01 0.04 0.03 0.005: 0.03 0.06 0.06 0.02 (by hand)")


if __name__ == "__main__":
    main()
