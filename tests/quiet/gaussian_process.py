"""Gaussian process regression: the RBF kernel is (N, 1) minus (1, N), the hyperparameters are learnt by Adam.
Tempts: loss-broadcast (a broadcast to (N, N) inside the loss is the definition of a kernel)."""

# %%
import math

import torch

torch.manual_seed(36)
distance = torch.rand(40, 1) * 8
elevation = (distance.squeeze(1) * 1.3).sin() + 0.1 * torch.randn(40)
log_length, log_scale, log_noise = (torch.zeros((), requires_grad=True) for _ in range(3))
optimizer = torch.optim.Adam([log_length, log_scale, log_noise], lr=0.1)


def kernel(a, b):
    return (2 * log_scale).exp() * torch.exp(-0.5 * (a - b.T).square() / (2 * log_length).exp())


def negative_log_likelihood():
    covariance = kernel(distance, distance) + (2 * log_noise).exp() * torch.eye(40)
    factor = torch.linalg.cholesky(covariance)
    weights = torch.cholesky_solve(elevation.unsqueeze(1), factor).squeeze(1)
    return 0.5 * elevation @ weights + factor.diagonal().log().sum() + 20 * math.log(2 * math.pi)


# %%
for _ in range(25):
    optimizer.zero_grad()
    loss = negative_log_likelihood()
    loss.backward()
    optimizer.step()
print(loss.item(), log_length.exp().item())
