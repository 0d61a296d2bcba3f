"""Windows of a picture, tokens and groups of them: views that cut without mixing, and go back.
Tempts: view-where-permute-meant."""

# %%

import torch

x = torch.randn(2, 16, 16, 8)

# %%

B, H, W, C = x.shape
win = x.view(B, H // 4, 4, W // 4, 4, C).permute(0, 1, 3, 2, 4, 5).reshape(-1, 16, C)
back = win.view(B, 4, 4, 4, 4, C).permute(0, 1, 3, 2, 4, 5).reshape(B, H, W, C)
tok = x.flatten(1, 2)
heads = tok.view(B, 256, 2, 4).transpose(1, 2)
grp = tok.view(B, 4, 64, 8)
ps = x.reshape(B, 16, 4, 4, 8)
