"""A closure over the loop's batch is handed to step() and called at once, in the same iteration.
Tempts: late-binding-closure (a function made in a loop reads the loop variables)."""

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(14)
soil = torch.randn(120, 4)
acidity = (soil * torch.tensor([0.5, -1.0, 0.0, 2.0])).sum(1, keepdim=True)
loader = DataLoader(TensorDataset(soil, acidity), batch_size=40, shuffle=True)
regression = nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(regression.parameters(), lr=0.3, max_iter=4)

# %%
for x, y in loader:

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(regression(x), y)
        loss.backward()
        return loss

    before = optimizer.step(closure)
    print(round(before.item(), 4))
