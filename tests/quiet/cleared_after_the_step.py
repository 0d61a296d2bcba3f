"""zero_grad(set_to_none=False) at the end of each iteration; the first one finds no gradients to clear.
Tempts: missing-zero-grad (gradients are zero tensors, never None, when backward starts)."""

# %%
import torch
from torch import nn

torch.manual_seed(23)
torque, wear = torch.randn(90, 3), torch.rand(90, 1)
bearing = nn.Sequential(nn.Linear(3, 10), nn.Sigmoid(), nn.Linear(10, 1))
optimizer = torch.optim.Adagrad(bearing.parameters(), lr=0.05)


# %%
def one_epoch():
    worst = 0.0
    for x, y in zip(torque.split(30), wear.split(30), strict=True):
        loss = nn.functional.mse_loss(bearing(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
        worst = max(worst, loss.item())
    return worst


# %%
print([round(one_epoch(), 4) for _ in range(6)])
