"""Focal loss written with log_softmax and gather, and an entropy term that takes softmax beside the cross entropy.
Tempts: softmax-before-cross-entropy (softmax and cross entropy both start from the same logits)."""

# %%
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(43)
parcels = torch.randn(160, 10)
damaged = (parcels[:, 0] > 1.2).long()
sorter = nn.Sequential(nn.Linear(10, 24), nn.SiLU(), nn.Linear(24, 2))
optimizer = torch.optim.AdamW(sorter.parameters(), lr=1e-2)


def focal_loss(logits, target, gamma=2.0):
    log_prob = F.log_softmax(logits, dim=1).gather(1, target.unsqueeze(1)).squeeze(1)
    return (-((1 - log_prob.exp()) ** gamma) * log_prob).mean()


def confidence_penalty(logits):
    probability = logits.softmax(dim=1)
    return (probability * logits.log_softmax(dim=1)).sum(1).mean()


# %%
for step in range(20):
    logits = sorter(parcels)
    if step < 10:
        loss = focal_loss(logits, damaged)
    else:
        loss = F.cross_entropy(logits, damaged) + 0.1 * confidence_penalty(logits)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
