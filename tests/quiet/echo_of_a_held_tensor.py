"""Cells end with a large tensor that a variable keeps anyway, a small copy of one, or a semicolon.
Tempts: notebook-output-pins-tensor."""

# %%
import torch
from torch import nn

torch.manual_seed(63)
terrain = torch.randn(700, 700)
terrain

# %%
terrain[:3, :4].clone()

# %%
smooth = nn.functional.avg_pool2d(terrain.unsqueeze(0), 5, stride=1, padding=2).squeeze(0)
slope = smooth.diff(dim=0)
slope

# %%
terrain @ terrain;  # fmt: skip

# %%
(smooth - terrain).abs().mean()
