"""Gradients of two tasks are taken one after the other, projected off each other and written to p.grad by hand.
Tempts: zero-grad-misplaced (gradients cleared twice per step), missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(18)
samples = torch.randn(100, 7)
hardness = samples[:, :1].abs()
colour = (samples[:, 1] > 0).long()
trunk = nn.Sequential(nn.Linear(7, 20), nn.ReLU())
hardness_head, colour_head = nn.Linear(20, 1), nn.Linear(20, 2)
shared = list(trunk.parameters())
optimizer = torch.optim.Adam([*shared, *hardness_head.parameters(), *colour_head.parameters()], lr=5e-3)


def flat_gradient(loss):
    for p in shared:
        p.grad = None
    loss.backward(retain_graph=True)
    return torch.cat([p.grad.flatten() for p in shared])


def project(gradient, other):
    overlap = torch.dot(gradient, other)
    return gradient - overlap.clamp(max=0) / other.square().sum() * other


# %%
for _ in range(12):
    optimizer.zero_grad()
    body = trunk(samples)
    first = flat_gradient(nn.functional.mse_loss(hardness_head(body), hardness))
    second = flat_gradient(nn.functional.cross_entropy(colour_head(body), colour))
    combined = project(first, second) + project(second, first)
    for p, piece in zip(shared, combined.split([p.numel() for p in shared]), strict=True):
        p.grad = piece.view_as(p).clone()
    optimizer.step()
print(combined.norm().item())
