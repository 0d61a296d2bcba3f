"""Functions made in loops that take their value at once: default arguments, factories, partials, immediate use.
Tempts: late-binding-closure."""

# %%
import functools
import operator

import torch

torch.manual_seed(51)
thresholds = (0.25, 0.5, 0.75)


def above(limit):
    return lambda x: (x > limit).float().mean()


by_default = [lambda x, t=t: (x > t).float().mean() for t in thresholds]
by_factory = {t: above(t) for t in thresholds}
by_partial = []
for t in thresholds:
    by_partial.append(functools.partial(torch.gt, other=t))

# %%
sample = torch.rand(1000)
print([f(sample).item() for f in by_default])
print({t: f(sample).item() for t, f in by_factory.items()})
print([f(sample).sum().item() for f in by_partial])

# %%
for column in range(3):
    table = torch.rand(5, 3).tolist()
    ordered = sorted(table, key=lambda row: row[column])
    largest = max(table, key=operator.itemgetter(column))
    kept = list(filter(lambda row: row[column] > 0.3, ordered))
    print(len(kept), largest[column] == ordered[-1][column])
