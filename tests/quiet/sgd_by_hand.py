"""Gradient descent without an optimizer: update in place under no_grad, gradients cleared by hand.
Tempts: missing-zero-grad (no zero_grad anywhere), graph-retained-in-list."""

# %%
import torch

torch.manual_seed(24)
height = torch.linspace(0, 1, 80)
pressure = 1.2 - 0.8 * height + 0.3 * height**2 + 0.01 * torch.randn(80)
coefficients = torch.zeros(3, requires_grad=True)
powers = torch.stack([height**0, height, height**2], dim=1)
track = []

# %%
for _ in range(60):
    loss = (powers @ coefficients - pressure).square().mean()
    loss.backward()
    with torch.no_grad():
        coefficients -= 0.4 * coefficients.grad
        coefficients.grad.zero_()
    track.append(coefficients.detach().clone())
print(track[-1].tolist(), loss.item())
