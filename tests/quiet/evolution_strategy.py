"""An evolution strategy: forward passes under no_grad are the training, the estimate is written to p.grad.
Tempts: optimizer-of-another-model (no loss is ever differentiated), eval-missing, missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(88)
wind, angle = torch.randn(70, 3), torch.randn(70, 1)
sail = nn.Sequential(nn.Linear(3, 10), nn.Tanh(), nn.Linear(10, 1))
optimizer = torch.optim.Adam(sail.parameters(), lr=2e-2)
weights = list(sail.parameters())


@torch.no_grad()
def estimated_gradient(pairs=8, sigma=0.05):
    centre = nn.utils.parameters_to_vector(weights)
    total = torch.zeros_like(centre)
    for _ in range(pairs):
        direction = torch.randn_like(centre)
        for sign in (1.0, -1.0):
            nn.utils.vector_to_parameters(centre + sign * sigma * direction, weights)
            total += sign * nn.functional.mse_loss(sail(wind), angle) * direction
    nn.utils.vector_to_parameters(centre, weights)
    return total / (2 * sigma * pairs)


# %%
for _ in range(10):
    pieces = estimated_gradient().split([p.numel() for p in weights])
    for p, piece in zip(weights, pieces, strict=True):
        p.grad = piece.view_as(p)
    optimizer.step()
with torch.no_grad():
    print(nn.functional.mse_loss(sail(wind), angle).item())
