"""Five-fold cross-validation: each fold builds a model and its optimizer anew, trains, and is evaluated.
Tempts: optimizer-of-another-model, train-not-restored (a model in eval mode is followed by training another)."""

# %%
import torch
from torch import nn

torch.manual_seed(53)
resin = torch.randn(150, 7)
cured = (resin[:, 0] + resin[:, 1] * resin[:, 2] > 0).long()


def build():
    model = nn.Sequential(nn.Linear(7, 20), nn.BatchNorm1d(20), nn.ReLU(), nn.Dropout(0.2), nn.Linear(20, 2))
    return model, torch.optim.Adam(model.parameters(), lr=1e-2)


def train(model, optimizer, x, y, epochs=4):
    model.train()
    for _ in range(epochs):
        for chunk in torch.randperm(len(x)).split(30):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x[chunk]), y[chunk]).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, x, y):
    model.eval()
    return (model(x).argmax(1) == y).float().mean().item()


# %%
scores = []
for held_out in torch.arange(150).split(30):
    kept = torch.ones(150, dtype=torch.bool)
    kept[held_out] = False
    model, optimizer = build()
    train(model, optimizer, resin[kept], cured[kept])
    scores.append(accuracy(model, resin[held_out], cured[held_out]))
print([round(score, 2) for score in scores])
