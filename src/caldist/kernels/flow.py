"""The cheapest way to carry mass from sources into sinks: a network simplex.

Sources and sinks form a complete bipartite graph with costs between 0 and 1. The sources hold at
least as much as the sinks take; what is left over goes to the root at cost 0. So the optimal
potentials p are at least 0 at the sources, and cost[i, m] >= p[m] - p[i].

A basis is a spanning tree: each node has a parent, the arc to it in one of both directions, and a
flow. At first all mass goes through the root, from which the arcs to sinks cost 2; no cheapest way
uses these, because any direct arc costs at most 1. The arc that leaves the basis is chosen so that
the tree stays strongly feasible (Cunningham 1976), which excludes cycling.
"""

from __future__ import annotations

try:
    import cython
except ImportError:  # plain Python on a machine without Cython
    from caldist.kernels import _shim as cython

from caldist.kernels._checkpoint import checkpoint
from caldist.kernels.arrays import doubles, integers


def transport(
    supply: cython.const[cython.double][::1],
    demand: cython.const[cython.double][::1],
    cost: cython.const[cython.double][:, ::1],
    tolerance: cython.double,
    potential: cython.double[::1],
) -> float:
    """Return the cost of the cheapest way; write the potentials of the sinks.

    Supplies and demands are positive, and the supplies add up to at least the demands. Arcs whose
    reduced cost is above minus ``tolerance`` are left alone.
    """
    ns: cython.Py_ssize_t = supply.shape[0]
    nt: cython.Py_ssize_t = demand.shape[0]
    root: cython.Py_ssize_t = ns + nt
    count: cython.Py_ssize_t = ns * (nt + 1)
    parent: cython.longlong[::1] = integers(root + 1)
    first: cython.longlong[::1] = integers(root + 1)
    after: cython.longlong[::1] = integers(root + 1)
    before: cython.longlong[::1] = integers(root + 1)
    depth: cython.longlong[::1] = integers(root + 1)
    up: cython.longlong[::1] = integers(root + 1)  # 1 where the arc goes from node to parent
    flow: cython.double[::1] = doubles(root + 1)
    height: cython.double[::1] = doubles(root + 1)
    block: cython.Py_ssize_t = 64
    i: cython.Py_ssize_t
    m: cython.Py_ssize_t
    u: cython.Py_ssize_t
    w: cython.Py_ssize_t
    p: cython.Py_ssize_t
    q: cython.Py_ssize_t
    out: cython.Py_ssize_t
    above: cython.Py_ssize_t
    below: cython.Py_ssize_t
    best_i: cython.Py_ssize_t
    best_m: cython.Py_ssize_t
    seen: cython.Py_ssize_t
    in_block: cython.Py_ssize_t
    pivots: cython.Py_ssize_t = 0
    limit: cython.Py_ssize_t
    on_p: cython.bint
    turned: cython.longlong
    kept: cython.longlong
    value = 0.0
    with cython.nogil:
        while block * block < count:
            block += 64
        limit = 2000 * (root + 1) + 1000000
        parent[root] = -1
        depth[root] = 0
        height[root] = 0.0
        flow[root] = 0.0
        up[root] = 0
        first[root] = 0
        after[root] = -1
        before[root] = -1
        for u in range(root):
            parent[u] = root
            first[u] = -1
            before[u] = u - 1
            after[u] = u + 1 if u + 1 < root else -1
            depth[u] = 1
            if u < ns:
                up[u] = 1
                flow[u] = supply[u]
                height[u] = 0.0
            else:
                up[u] = 0
                flow[u] = demand[u - ns]
                height[u] = 2.0
        i = 0
        m = 0
        while pivots < limit:
            # Look for an arc that pays, a block at a time; the best of the first block with any.
            best = -tolerance
            best_i = -1
            best_m = -1
            seen = 0
            in_block = 0
            while seen < count:
                if m < nt:
                    reduced = cost[i, m] + height[i] - height[ns + m]
                else:
                    reduced = height[i]
                if reduced < best:
                    best = reduced
                    best_i = i
                    best_m = m
                m += 1
                if m > nt:
                    m = 0
                    i += 1
                    if i == ns:
                        i = 0
                seen += 1
                in_block += 1
                if in_block == block:
                    if best_i >= 0:
                        break
                    in_block = 0
            if best_i < 0:
                break
            pivots += 1
            if pivots % 256 == 0:
                with cython.gil:
                    checkpoint()
            p = best_i
            q = ns + best_m if best_m < nt else root
            # The cycle: from p over the new arc to q, up to where both meet, and down to p.
            u = p
            w = q
            while u != w:
                if depth[u] >= depth[w]:
                    u = parent[u]
                else:
                    w = parent[w]
            above = u
            delta = 1e300
            out = -1
            on_p = True
            u = p
            while u != above:
                if up[u] == 1 and flow[u] < delta:
                    delta = flow[u]
                    out = u
                u = parent[u]
            u = q
            while u != above:
                if up[u] == 0 and flow[u] <= delta:
                    delta = flow[u]
                    out = u
                    on_p = False
                u = parent[u]
            if out < 0:  # cannot be: some flow always ends
                break
            u = p
            while u != above:
                flow[u] += delta if up[u] == 0 else -delta
                u = parent[u]
            u = q
            while u != above:
                flow[u] += delta if up[u] == 1 else -delta
                u = parent[u]
            # Hang what is cut off below the new arc, turning the path from there to the cut.
            if on_p:
                below = p
                w = q
                turned = 1
                change = -best
            else:
                below = q
                w = p
                turned = 0
                change = best
            # height[below] moves so that the new arc's reduced cost is 0
            moved = delta
            u = below
            while True:
                above = parent[u]
                other = flow[u]
                kept = up[u]
                # take u from the children of its parent
                if before[u] >= 0:
                    after[before[u]] = after[u]
                else:
                    first[above] = after[u]
                if after[u] >= 0:
                    before[after[u]] = before[u]
                # and give it to the new one
                parent[u] = w
                flow[u] = moved
                up[u] = turned
                before[u] = -1
                after[u] = first[w]
                if first[w] >= 0:
                    before[first[w]] = u
                first[w] = u
                if u == out:
                    break
                moved = other
                turned = 1 - kept
                w = u
                u = above
            # Heights and depths of all that hangs there now, parents first.
            u = below
            while True:
                height[u] += change
                depth[u] = depth[parent[u]] + 1
                if first[u] >= 0:
                    u = first[u]
                    continue
                while u != below and after[u] < 0:
                    u = parent[u]
                if u == below:
                    break
                u = after[u]
        for u in range(root):
            w = parent[u]
            if w == root:
                if up[u] == 0:
                    value += 2.0 * flow[u]
            elif u < ns:
                value += cost[u, w - ns] * flow[u]
            else:
                value += cost[w, u - ns] * flow[u]
        for m in range(nt):
            potential[m] = height[ns + m]
    return value
