"""Several classes: independent ways to the same numbers, and instances to try them on."""

from itertools import combinations, product

import numpy as np
from scipy import sparse

from oracles import set_partitions, solve_lp


def total_variation(a, b):
    return 0.5 * np.abs(a[:, None, :] - b[None, :, :]).sum(axis=2)


def one_hot(y, k):
    return np.eye(k)[y]


def shares(y, weight=None):
    weight = np.ones(len(y)) if weight is None else np.asarray(weight, float)
    return weight / weight.sum()


def grid(k, steps):
    points = [c for c in product(range(steps + 1), repeat=k - 1) if sum(c) <= steps]
    return np.array([(*c, steps - sum(c)) for c in points]) / steps


def distance_lp(y, V, weight=None, steps=12):
    """ldCE_k with calibrated predictions on the rows, a grid and the label means of all subsets.

    It is at least ldCE_k, and close to it.
    """
    n, k = V.shape
    labels = one_hot(y, k)
    means = [
        labels[list(rows)].mean(axis=0)
        for size in range(1, min(n, 7) + 1)
        for rows in combinations(range(min(n, 7)), size)
    ]
    U = np.unique(np.round(np.vstack((grid(k, steps), V, means)), 12), axis=0)
    m = len(U)
    column = np.arange(n * m)
    group = np.tile(np.arange(m), n)
    blocks = [sparse.kron(sparse.eye(n), np.ones((1, m)))]
    for j in range(k):
        coefficient = (labels[:, j][:, None] - U[:, j][None, :]).ravel()
        blocks.append(sparse.csr_matrix((coefficient, (group, column)), shape=(m, n * m)))
    right = np.concatenate((shares(y, weight), np.zeros(m * k)))
    return solve_lp(total_variation(V, U).ravel(), A_eq=sparse.vstack(blocks).tocsr(), b_eq=right)


def smooth_lp(y, V, weight=None):
    """smCE_k by k linear programs over all pairs of rows."""
    n, k = V.shape
    c = shares(y, weight)[:, None] * (one_hot(y, k) - V)
    if n == 1:
        return 0.5 * np.abs(c).sum()
    D = total_variation(V, V)
    first, second = np.nonzero(~np.eye(n, dtype=bool))
    rows = np.arange(first.size)
    A = sparse.csr_matrix(
        (
            np.concatenate((np.ones(rows.size), -np.ones(rows.size))),
            (np.concatenate((rows, rows)), np.concatenate((first, second))),
        ),
        shape=(rows.size, n),
    )
    bound = D[first, second]
    return 0.5 * sum(-solve_lp(-c[:, j], A_ub=A, b_ub=bound, bounds=(-1, 1)) for j in range(k))


def distance_over_partitions(y, V):
    """Return the least cost of grouping rows and predicting the mean label of each group."""
    n, k = V.shape
    labels = one_hot(y, k)
    best = np.inf
    for parts in set_partitions(list(range(n))):
        cost = 0.0
        for part in parts:
            rows = list(part)
            cost += 0.5 * np.abs(V[rows] - labels[rows].mean(axis=0)).sum()
        best = min(best, cost / n)
    return best


def kernel_square(y, V, bandwidth, weight=None):
    c = shares(y, weight)[:, None] * (one_hot(y, V.shape[1]) - V)
    kernel = np.exp(-total_variation(V, V) / bandwidth)
    return 0.5 * sum(kernel[i, l] * (c[i] @ c[l]) for i in range(len(y)) for l in range(len(y)))


def instance(seed, n=None, k=None, *, ties=True):
    """Return labels and a matrix: some rows equal, some probabilities 0, labels of any kind."""
    rng = np.random.default_rng(seed)
    k = int(rng.integers(3, 5)) if k is None else k
    n = int(rng.integers(2, 8)) if n is None else n
    V = rng.dirichlet(np.full(k, rng.choice([0.3, 1.0, 3.0])), n)
    if ties:
        V = V[rng.integers(0, n, n)]
        V = np.round(V * 8) / 8 if rng.random() < 0.3 else V
        V /= V.sum(axis=1, keepdims=True)
    if rng.random() < 0.5:
        y = np.array([rng.choice(k, p=row) for row in V])
    else:
        y = rng.integers(0, k, n)
    return y, V


def softmax(n, k, scale, beta, seed):
    """Return labels drawn from softmax probabilities, and these at another temperature."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(n, k))
    truth = np.exp(logits - logits.max(axis=1, keepdims=True))
    truth /= truth.sum(axis=1, keepdims=True)
    y = (rng.random(n)[:, None] > truth.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    V = truth**beta
    return y, V / V.sum(axis=1, keepdims=True)


def ring(points=36, radius=0.3, turn=0.6):
    """Return labels, a matrix and weights: every class is calibrated, the whole is not.

    Predictions lie on a circle about the middle, and mean labels are moved along it.
    """
    angle = 2 * np.pi * (np.arange(points) + 0.5) / points
    a, b = np.array([1, -1, 0]) / np.sqrt(2), np.array([1, 1, -2]) / np.sqrt(6)
    out = np.cos(angle)[:, None] * a + np.sin(angle)[:, None] * b
    along = -np.sin(angle)[:, None] * a + np.cos(angle)[:, None] * b
    v = 1 / 3 + radius * out
    mean = v + turn * radius * along
    return np.tile(np.arange(3), points), np.repeat(v, 3, axis=0), (mean / points).ravel()
