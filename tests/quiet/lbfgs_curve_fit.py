"""A decay curve fitted by LBFGS; the closure clears, computes and goes backward many times per step.
Tempts: missing-zero-grad (more backward calls than steps)."""

# %%
import torch

torch.manual_seed(13)
minutes = torch.linspace(0, 10, 50)
activity = 4.0 * torch.exp(-0.6 * minutes) + 0.5 + 0.02 * torch.randn(50)
amplitude, rate, floor = (torch.tensor(v, requires_grad=True) for v in (1.0, 0.2, 0.0))
optimizer = torch.optim.LBFGS([amplitude, rate, floor], lr=0.5, max_iter=10, line_search_fn="strong_wolfe")


def closure():
    optimizer.zero_grad()
    curve = amplitude * torch.exp(-rate * minutes) + floor
    loss = (curve - activity).square().mean()
    loss.backward()
    return loss


# %%
for _ in range(5):
    residual = optimizer.step(closure)
print([round(p.item(), 2) for p in (amplitude, rate, floor)], residual.item())
