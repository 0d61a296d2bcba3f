"""Columns that are chosen, put in order and paired with rows by index tensors.
Tempts: arange-is-not-colon (a colon stands beside an index tensor)."""

# %%
import torch
from torch import nn

torch.manual_seed(15)
genes, patients = 40, 24
expression = torch.randn(patients, genes)
ill = torch.randint(0, 3, (patients,))
strongest = expression.var(0).argsort(descending=True)
chosen = strongest[:patients]
panel = expression[:, chosen]
sorted_panel = panel[:, panel.mean(0).argsort()]

# %%
model = nn.Linear(patients, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    optimizer.zero_grad()
    log_p = torch.log_softmax(model(sorted_panel), 1)
    loss = -log_p[torch.arange(patients), ill].mean()
    loss.backward()
    optimizer.step()
first = log_p[torch.arange(patients), 0]
predicted = log_p.argmax(1)
sure = log_p[range(patients), predicted].exp()
