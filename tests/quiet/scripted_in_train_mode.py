"""A scripted network keeps its mode in C++: it trains as it was made, and is switched for measuring.
Tempts: eval-without-no-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(0)
net = torch.jit.script(nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1)))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(128, 6)
y = x[:, :2].sum(1, keepdim=True)

# %%
out = net(x)

# %%
loss = nn.functional.mse_loss(out, y)
loss.backward()
optimizer.step()

# %%
for _ in range(20):
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(net(x), y)
    loss.backward()
    optimizer.step()

# %%
net.eval()
with torch.no_grad():
    error = (net(x) - y).abs().mean().item()
