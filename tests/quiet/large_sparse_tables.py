"""Recommender with large tables: one sparse, one frozen, one tied to the output; positions are cut to length.
Tempts: dense-embedding-gradient, masked-parameter-dense-grad (large tables, few rows)."""

# %%
import torch
from torch import nn


class Recommender(nn.Module):
    def __init__(self, items, people, width):
        super().__init__()
        self.people = nn.Embedding(people, width, sparse=True)
        self.genres = nn.Embedding.from_pretrained(torch.zeros(people, width))
        self.items = nn.Embedding(items, width)
        self.places = nn.Parameter(torch.zeros(people, width))

    def forward(self, person, history):
        seen = self.items(history) + self.places[: history.shape[1]]
        state = seen.mean(1) + self.people(person) + self.genres(person)
        return state @ self.items.weight.T


torch.manual_seed(63)
model = Recommender(items=2_000, people=140_000, width=64)
sparse = torch.optim.SparseAdam([model.people.weight], lr=1e-3)
dense = torch.optim.SGD([model.items.weight, model.places], lr=1e-1)

# %%
for _ in range(2):
    person, history = torch.randint(0, 140_000, (16,)), torch.randint(0, 2_000, (16, 12))
    loss = nn.functional.cross_entropy(model(person, history[:, :-1]), history[:, -1])
    for optimizer in (sparse, dense):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (sparse, dense):
        optimizer.step()
print(loss.item())
