"""Recommendation by two sparse tables and biases, negative samples drawn anew, ranking loss by logsigmoid.
Tempts: dense-embedding-gradient, loss-broadcast, idle-rows-still-updated."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(75)


class Ranking(nn.Module):
    def __init__(self, users=3000, items=5000, width=16):
        super().__init__()
        self.users, self.items = nn.Embedding(users, width, sparse=True), nn.Embedding(items, width, sparse=True)
        self.bias = nn.Embedding(items, 1, sparse=True)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(1) + self.bias(item).squeeze(1)


model = Ranking()
opt = torch.optim.SparseAdam(list(model.parameters()), lr=1e-2)

# %%
for step in range(6):
    user, liked = torch.randint(0, 3000, (64,)), torch.randint(0, 5000, (64,))
    other = torch.randint(0, 5000, (64,))
    loss = -F.logsigmoid(model(user, liked) - model(user, other)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
