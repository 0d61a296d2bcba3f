"""Monte-Carlo dropout over batches of one input, with options that are called `opt`; bad batches that are left out.
Tempts: eval-missing, zero-grad-misplaced (gradients cleared before a step, predictions in train mode)."""

# %%
import types

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(6)
opt = types.SimpleNamespace(samples=20, size=32)
net = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.5), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))


def predict(model, rows, opt):
    return torch.cat([model(part).softmax(-1) for part in rows.split(opt.size)])


for t in range(8):
    F.cross_entropy(net(x * (1e4 if t in (2, 5) else 1)), y).backward()
    norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    if norm > 100:
        optimizer.zero_grad()  # an outlier
    optimizer.step()
    optimizer.zero_grad()

# %%
with torch.no_grad():
    samples = torch.stack([predict(net, x, opt) for _ in range(opt.samples)])

# %%
with torch.no_grad():
    runs = []
    for _ in range(opt.samples):
        parts = []
        for part in x.split(32):
            parts.append(net(part).softmax(-1))  # noqa: PERF401
        runs.append(torch.cat(parts))
spread = torch.stack(runs).std(0).mean().item()

# %%
frames = [torch.randint(0, 20, (16, 16), dtype=torch.uint8) for _ in range(10)]  # sums below 200
total = frames[0].clone()
for frame in frames[1:]:
    total += frame
frames.append(total)
for frame in frames:
    frame.mul_(12)  # brighter, for the picture
