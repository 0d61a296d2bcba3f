"""Mixed precision on the CPU: autocast in bfloat16 around the forward, GradScaler, unscale before clipping.
Tempts: zero-grad-misplaced, missing-zero-grad (steps are taken by scaler.step, which may skip one)."""

# %%
import torch
from torch import nn

torch.manual_seed(69)
rain, flow = torch.randn(128, 10), torch.randint(0, 3, (128,))
basin = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.AdamW(basin.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)


# %%
def train_step(x, y):
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(basin(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(basin.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


# %%
for epoch in range(3):
    basin.train()
    losses = [train_step(x, y) for x, y in zip(rain.split(32), flow.split(32), strict=True)]
    basin.eval()
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        accuracy = (basin(rain).argmax(1) == flow).float().mean()
    print(epoch, round(sum(losses) / len(losses), 2), round(accuracy.item(), 2))
