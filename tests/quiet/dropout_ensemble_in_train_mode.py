"""Monte Carlo dropout in its shortest form: train() is called on purpose before many passes over the same input.
Tempts: eval-missing (the network only has dropout, train mode is asked for by name)."""

# %%
import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(5, 32)
        self.dropout = nn.Dropout(0.3)
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        return self.out(self.dropout(self.hidden(x).relu()))


torch.manual_seed(2)
weather = torch.randn(200, 5)
harvest = weather[:, :2].prod(1, keepdim=True)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

# %%
for start in range(0, 200, 25):
    optimizer.zero_grad()
    nn.functional.l1_loss(model(weather[start : start + 25]), harvest[start : start + 25]).backward()
    optimizer.step()


# %%
@torch.no_grad()
def predict_with_spread(model, x, passes=40):
    """Mean and standard deviation over random dropout masks."""
    was_training = model.training
    model.train()
    draws = torch.stack([model(x) for _ in range(passes)])
    model.train(was_training)
    return draws.mean(0), draws.std(0)


mean, spread = predict_with_spread(model, weather[:10])
print(spread.squeeze(1).tolist())
