"""Losses of several tasks are collected in a list that is summed and differentiated in the same iteration.
Tempts: graph-retained-in-list (losses with history are appended to a list)."""

# %%
import torch
from torch import nn

torch.manual_seed(27)
profile = torch.randn(140, 11)
answers = {"rent": torch.randn(140), "age": torch.rand(140), "pets": torch.randint(0, 4, (140,)).float()}
body = nn.Sequential(nn.Linear(11, 30), nn.GELU(), nn.LayerNorm(30))
heads = nn.ModuleDict({name: nn.Linear(30, 1) for name in answers})
optimizer = torch.optim.AdamW([*body.parameters(), *heads.parameters()], lr=4e-3)
curves = {name: [] for name in answers}

# %%
for _ in range(15):
    hidden = body(profile)
    losses = []
    for name, head in heads.items():
        task_loss = nn.functional.mse_loss(head(hidden).squeeze(1), answers[name])
        losses.append(task_loss)
        curves[name].append(task_loss.item())
    optimizer.zero_grad()
    torch.stack(losses).sum().backward()
    optimizer.step()
print({name: curve[-1] for name, curve in curves.items()})
