"""Two losses over one forward pass go backward one after the other, the first with retain_graph=True.
Tempts: missing-zero-grad (two backward calls before the step, on purpose)."""

# %%
import torch
from torch import nn


class Thermostat(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 18), nn.Tanh())
        self.temperature = nn.Linear(18, 1)
        self.alarm = nn.Linear(18, 1)

    def forward(self, x):
        hidden = self.body(x)
        return self.temperature(hidden), self.alarm(hidden)


torch.manual_seed(26)
room, warmth = torch.randn(64, 6), torch.randn(64, 1)
rings = (warmth > 1).float()
model = Thermostat()
optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)

# %%
for _ in range(12):
    optimizer.zero_grad()
    temperature, alarm = model(room)
    regression = nn.functional.mse_loss(temperature, warmth)
    detection = nn.functional.binary_cross_entropy_with_logits(alarm, rings)
    regression.backward(retain_graph=True)
    detection.backward()
    optimizer.step()
print(regression.item(), detection.item())
