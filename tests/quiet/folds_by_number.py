"""Cross-validation over a large tensor with numbers of rows; one split and one new order are real copies.
Tempts: mask-index-copies (indexing by masks and numbers, some of it kept)."""

# %%
import torch
from torch import nn

torch.manual_seed(64)
scans = torch.randn(3000, 1024)
healthy = (scans[:, :8].sum(1) > 0).long()
order = torch.randperm(3000)
train, test = scans[order[:2400]], scans[order[2400:]]
answers = healthy[order[:2400]]

# %%
folds = [torch.arange(2400)[torch.arange(2400) % 4 == fold] for fold in range(4)]
scores = []
for fold in folds:
    kept = torch.ones(2400, dtype=torch.bool)
    kept[fold] = False
    model = nn.Linear(1024, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    nn.functional.cross_entropy(model(train[kept]), answers[kept]).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        scores.append((model(train[fold]).argmax(1) == answers[fold]).float().mean().item())
print(scores)
