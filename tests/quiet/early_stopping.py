"""Early stopping: the best state dict is kept by deepcopy and loaded back; the loop may break in eval mode.
Tempts: train-not-restored (the last pass before the break leaves eval), graph-retained-in-list."""

# %%
import copy

import torch
from torch import nn

torch.manual_seed(61)
yeast = torch.randn(90, 8)
rise = yeast[:, :1] + 0.5 * torch.randn(90, 1)
model = nn.Sequential(nn.Linear(8, 40), nn.BatchNorm1d(40), nn.ReLU(), nn.Linear(40, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)


def validation_loss():
    model.eval()
    with torch.no_grad():
        return nn.functional.mse_loss(model(yeast[60:]), rise[60:]).item()


# %%
best, best_state, waited = float("inf"), None, 0
for epoch in range(40):
    model.train()
    optimizer.zero_grad()
    nn.functional.mse_loss(model(yeast[:60]), rise[:60]).backward()
    optimizer.step()
    score = validation_loss()
    plateau.step(score)
    if score < best:
        best, best_state, waited = score, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
    if waited == 4:
        break

# %%
model.load_state_dict(best_state)
print(epoch, best, validation_loss() == best)
