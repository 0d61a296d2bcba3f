"""A variational autoencoder; afterwards its decoder alone turns random codes into samples, in eval and no_grad.
Tempts: loss-broadcast (mean and log-variance are summed over one axis), train-not-restored."""

# %%
import torch
from torch import nn
from torch.nn import functional as F


class Sketcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(36, 32), nn.ReLU(), nn.Dropout(0.05), nn.Linear(32, 8))
        self.decode = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 36))

    def forward(self, x):
        mean, log_variance = self.encode(x).chunk(2, dim=1)
        code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
        return self.decode(code), mean, log_variance


torch.manual_seed(46)
doodles = (torch.rand(144, 36) > 0.6).float()
sketcher = Sketcher()
optimizer = torch.optim.Adam(sketcher.parameters(), lr=3e-3)


# %%
def draw(count):
    sketcher.eval()
    with torch.no_grad():
        picture = sketcher.decode(torch.randn(count, 4)).sigmoid()
    sketcher.train()
    return picture


# %%
for epoch in range(3):
    for x in doodles.split(48):
        logits, mean, log_variance = sketcher(x)
        reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
        divergence = -0.5 * (1 + log_variance - mean.square() - log_variance.exp()).sum()
        loss = (reconstruction + divergence) / len(x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 2), round(draw(5).mean().item(), 3))
