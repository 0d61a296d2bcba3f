"""After training, one temperature is fitted to held-out logits by LBFGS while the network stays in eval mode.
Tempts: train-not-restored (steps after an inference pass with everything in eval)."""

# %%
import torch
from torch import nn

torch.manual_seed(72)
seeds = torch.randn(220, 6)
plant = (seeds @ torch.randn(6, 4) + torch.randn(220, 4)).argmax(1)
model = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
model.train()
for _ in range(25):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(seeds[:150]), plant[:150]).backward()
    optimizer.step()

# %%
model.eval()
with torch.no_grad():
    logits = model(seeds[150:])
log_temperature = torch.zeros((), requires_grad=True)
calibrator = torch.optim.LBFGS([log_temperature], max_iter=20)


def closure():
    calibrator.zero_grad()
    loss = nn.functional.cross_entropy(logits / log_temperature.exp(), plant[150:])
    loss.backward()
    return loss


# %%
before = calibrator.step(closure)
print(before.item(), log_temperature.exp().item())
