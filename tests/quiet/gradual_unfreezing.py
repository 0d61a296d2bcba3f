"""Layers wake up one after the other: each is added to the optimizer as a group of its own when its turn comes.
Tempts: parameters-missing-from-optimizer, optimizer made from a filter, frozen-batchnorm-drifts."""

# %%
import torch
from torch import nn

torch.manual_seed(60)
stages = nn.Sequential(
    nn.Sequential(nn.Linear(8, 16), nn.ReLU()),
    nn.Sequential(nn.Linear(16, 16), nn.ReLU()),
    nn.Linear(16, 2),
)
stages.requires_grad_(False)
stages[2].requires_grad_(True)
opt = torch.optim.SGD([p for p in stages.parameters() if p.requires_grad], lr=0.1)
x, y = torch.randn(60, 8), torch.randint(0, 2, (60,))


def fit(epochs):
    for _ in range(epochs):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(stages(x), y)
        loss.backward()
        opt.step()
    return loss.item()


# %%
fit(3)

# %%
for number in (1, 0):
    stages[number].requires_grad_(True)
    opt.add_param_group({"params": stages[number].parameters(), "lr": 0.01})
    print(number, fit(3))
