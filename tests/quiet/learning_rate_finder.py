"""A learning-rate range test on the model, which is then restored from a deep copy and gets a new optimizer.
Tempts: optimizer-of-another-model, graph-retained-in-list (losses of the sweep are kept as floats)."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(82)
blend, aroma = torch.randn(200, 7), torch.randn(200, 1)
model = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 1))


def step(optimizer):
    chunk = torch.randint(0, 200, (32,))
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(blend[chunk]), aroma[chunk])
    loss.backward()
    optimizer.step()
    return loss.detach()


# %%
untouched = copy.deepcopy(model.state_dict())
probe = torch.optim.SGD(model.parameters(), lr=1e-4)
ramp = torch.optim.lr_scheduler.ExponentialLR(probe, gamma=1.4)
sweep = []
for _ in range(20):
    rate = ramp.get_last_lr()[0]
    sweep.append((rate, step(probe)))
    ramp.step()
model.load_state_dict(untouched)
best_rate = min(sweep, key=lambda pair: pair[1].item())[0]

# %%
optimizer = torch.optim.SGD(model.parameters(), lr=best_rate)
losses = [step(optimizer) for _ in range(20)]
print(best_rate, torch.stack(losses).mean().item())
