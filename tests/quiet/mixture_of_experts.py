"""Experts chosen by a gate; in some batches an expert sees nothing, so its parameters get no gradient that time.
Tempts: optimizer-of-another-model, softmax-before-cross-entropy (the gate's softmax weighs logits)."""

# %%
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, width, classes, count):
        super().__init__()
        self.gate = nn.Linear(width, count)
        self.experts = nn.ModuleList(nn.Linear(width, classes) for _ in range(count))

    def forward(self, x):
        share = self.gate(x).softmax(dim=1)
        weight, choice = share.max(dim=1, keepdim=True)
        logits = x.new_zeros(len(x), self.experts[0].out_features)
        for index, expert in enumerate(self.experts):
            rows = (choice.squeeze(1) == index).nonzero().squeeze(1)
            if len(rows):
                logits = logits.index_add(0, rows, weight[rows] * expert(x[rows]))
        return logits


torch.manual_seed(80)
invoices = torch.randn(120, 8)
account = invoices[:, :5].argmax(1)
router = Experts(8, 5, count=6)
optimizer = torch.optim.Adam(router.parameters(), lr=2e-2)

# %%
for x, y in zip(invoices.split(12), account.split(12), strict=True):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(router(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), sum(p.grad is None for p in router.parameters()))
