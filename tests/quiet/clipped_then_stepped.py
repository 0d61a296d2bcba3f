"""Gradient norms are clipped and recorded between backward and step; a warm-up schedule moves once per step.
Tempts: zero-grad-misplaced, graph-retained-in-list (a list of norms, which carry no graph)."""

# %%
import torch
from torch import nn

torch.manual_seed(22)
routes = torch.randn(16, 14, 4)
delay = routes.sum((1, 2)) / 10
scanner = nn.GRU(4, 20, batch_first=True)
head = nn.Linear(20, 1)
weights = [*scanner.parameters(), *head.parameters()]
optimizer = torch.optim.AdamW(weights, lr=1e-2)
scheduler = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=10)
norms = []

# %%
for _ in range(20):
    hidden, _ = scanner(routes)
    loss = nn.functional.huber_loss(head(hidden[:, -1]).squeeze(-1), delay)
    optimizer.zero_grad()
    loss.backward()
    norms.append(nn.utils.clip_grad_norm_(weights, max_norm=0.5))
    optimizer.step()
    scheduler.step()
print(torch.stack(norms).max().item(), scheduler.get_last_lr())
