"""Graph statistics: edges, degrees and triangles of a friendship graph, private for an edge or for a person.

Hiding one friendship is easy: an edge changes a count of edges by 1. Hiding a person with all their friendships is much
harder, and costs accuracy. The same graph is asked under both.
"""

# %%
import numpy as np

import dither as dt

dice = np.random.default_rng(2)  # a made-up graph, not noise
PEOPLE, GROUPS = 1_200, 60
group = dice.integers(0, GROUPS, PEOPLE)
edges = set()
for a in range(PEOPLE):
    near = np.flatnonzero(group == group[a])
    for b in [*dice.choice(near, min(4, len(near)), replace=False), *dice.integers(0, PEOPLE, 2)]:
        if a != b:
            edges.add((min(a, int(b)), max(a, int(b))))
pairs = sorted(edges)

# %%
near = [set() for _ in range(PEOPLE)]
for a, b in pairs:
    near[a].add(b)
    near[b].add(a)
triangles = sum(len(near[a] & near[b]) for a, b in pairs) // 3
degrees = np.array([len(each) for each in near])
print(f"exact: {len(pairs)} edges, {triangles} triangles, degrees up to {degrees.max()}")

# %% [markdown]
# ## One friendship is hidden

# %%
friends = dt.Graph(pairs, nodes=PEOPLE)
count = friends.edge_count(epsilon=1)
print(f"edges      {count.value} ± {count.margin()}, exact {len(pairs)}")
found = friends.triangles(epsilon=1, margin_share="1/4")
print(f"triangles  {found.value} ± {found.margin():.0f}, exact {triangles}")

# %%
# Degrees in order, with the band of their margin
sequence = friends.degree_sequence(epsilon=1)
figure = sequence.plot("graph_statistics.png")
print(f"largest degree about {max(sequence.value)}, exact {degrees.max()}")

# %% [markdown]
# ## One person is hidden, with everybody they know
# A person can have any number of friends, so the graph is cut to a largest degree, which is chosen privately.

# %%
people = dt.Graph(pairs, nodes=PEOPLE, unit="node")
most = people.suggest_degree(epsilon="1/2", largest=PEOPLE, for_epsilon=1).value
count = people.edge_count(epsilon=1, most_degree=most, left_out=False)
print(f"edges within degree {most}: {count.value} ± {count.margin()}, exact {len(pairs)}")
