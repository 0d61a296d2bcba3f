"""Per-sample gradients by torch.func: vmap of grad, clipped, averaged, noised and written to p.grad without backward.
Tempts: missing-zero-grad (steps with gradients that no backward made), optimizer-of-another-model."""

# %%
import torch
from torch import nn
from torch.func import functional_call, grad, vmap

torch.manual_seed(66)
records = torch.randn(80, 6)
diagnosis = (records[:, 0] > 0).long()
clinic = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 2))
optimizer = torch.optim.SGD(clinic.parameters(), lr=0.2)


def one_loss(weights, x, y):
    logits = functional_call(clinic, weights, (x.unsqueeze(0),))
    return nn.functional.cross_entropy(logits, y.unsqueeze(0))


per_sample = vmap(grad(one_loss), in_dims=(None, 0, 0))

# %%
for _ in range(6):
    weights = {name: p.detach() for name, p in clinic.named_parameters()}
    each = per_sample(weights, records, diagnosis)
    norm = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
    factor = (1.0 / norm).clamp(max=1.0)
    for name, p in clinic.named_parameters():
        clipped = torch.einsum("n,n...->...", factor, each[name]) / len(records)
        p.grad = clipped + 0.01 * torch.randn_like(clipped)
    optimizer.step()
with torch.no_grad():
    print((clinic(records).argmax(1) == diagnosis).float().mean().item())
