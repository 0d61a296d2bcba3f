"""An energy model: samples climb its gradient in eval mode without touching the weights, then the weights learn.
Tempts: train-not-restored, eval-without-no-grad, signed-sum-loss, graph-retained-in-list."""

# %%
import torch
from torch import nn

torch.manual_seed(57)
energy = nn.Sequential(nn.Linear(2, 32), nn.SiLU(), nn.Linear(32, 1))
opt = torch.optim.Adam(energy.parameters(), lr=1e-3)
buffer = torch.randn(200, 2)


def langevin(x, steps=6, size=0.1):
    was_training = energy.training
    energy.eval()
    x = x.clone().requires_grad_(True)
    for _ in range(steps):
        (slope,) = torch.autograd.grad(energy(x).sum(), x)
        x = (x - size * slope + 0.02 * torch.randn_like(x)).detach().requires_grad_(True)
    energy.train(was_training)
    return x.detach()


# %%
for it in range(6):
    index = torch.randint(0, 200, (32,))
    negatives = langevin(buffer[index])
    buffer[index] = negatives
    positives = torch.randn(32, 2) * 0.3 + 1
    low, high = energy(positives), energy(negatives)
    loss = (low - high).mean() + 0.1 * (low.pow(2) + high.pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
