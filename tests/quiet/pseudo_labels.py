"""Self-training: labels for unlabelled data are drawn in eval and no_grad before each round, training follows train().
Tempts: train-not-restored, missing-zero-grad (inference passes between the rounds of one loop)."""

# %%
import torch
from torch import nn

torch.manual_seed(79)
labelled, label = torch.randn(60, 5), torch.randint(0, 2, (60,))
unlabelled = torch.randn(200, 5)
model = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def train(x, y, epochs=3):
    model.train()
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()


@torch.inference_mode()
def confident(x, limit):
    model.eval()
    certainty, guess = model(x).softmax(dim=1).max(dim=1)
    return certainty > limit, guess


# %%
train(labelled, label)
for limit in (0.9, 0.8, 0.7):
    sure, guess = confident(unlabelled, limit)
    train(torch.cat([labelled, unlabelled[sure]]), torch.cat([label, guess[sure]]))
    print(limit, int(sure.sum()))
