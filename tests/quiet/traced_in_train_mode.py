"""A traced network hands on to a scripted one, which keeps its mode.
Tempts: eval-without-no-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(0)
plain = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))
x = torch.randn(128, 6)
net = torch.jit.trace(plain, x, check_trace=False)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
y = x[:, :2].sum(1, keepdim=True)

# %%
loss = nn.functional.mse_loss(net(x), y)

# %%
loss.backward()
optimizer.step()
