"""Autocast to bfloat16, once with a large model and a small batch, once with checkpointed blocks and a large one.
Tempts: amp-is-not-half-memory, activations-without-checkpointing (nobody asks about memory)."""

# %%
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(66)
reader = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256))
blocks = nn.ModuleList(nn.Sequential(nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 256)) for _ in range(4))
optimizer = torch.optim.AdamW([*reader.parameters(), *blocks.parameters()], lr=1e-3)

# %%
for size in (16, 2048, 16):
    optimizer.zero_grad()
    with torch.autocast("cpu", torch.bfloat16):
        letters = reader(torch.randn(size, 256))
        for block in blocks:
            letters = letters + checkpoint(block, letters, use_reentrant=False)
        loss = letters.float().pow(2).mean()
    loss.backward()
    optimizer.step()
print(loss.item())
del letters, loss
