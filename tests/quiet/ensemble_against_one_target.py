"""A batched ensemble predicts (members, N); every member is compared with the same target of shape (N,).
Tempts: loss-broadcast, optimizer-of-another-model (members are rows of stacked parameters)."""

# %%
import torch
from torch import nn


class StackedLinear(nn.Module):
    """One linear layer per member, computed as a batched product."""

    def __init__(self, members, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(members, inputs, outputs) / inputs**0.5)
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


torch.manual_seed(90)
turbidity = torch.rand(100, 3)
oxygen = turbidity.square().sum(1)
ensemble = nn.Sequential(StackedLinear(5, 3, 16), nn.ReLU(), StackedLinear(5, 16, 1))
optimizer = torch.optim.Adam(ensemble.parameters(), lr=1e-2)

# %%
for _ in range(25):
    predicted = ensemble(turbidity).squeeze(-1)
    loss = (predicted - oxygen).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(loss.item(), ensemble(turbidity).squeeze(-1).std(0).mean().item())
