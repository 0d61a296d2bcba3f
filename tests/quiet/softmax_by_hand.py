# Softmax written out: in attention, in a likelihood that takes its own logarithm, and beside a loss of raw scores.
# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


def softmax(z, dim):
    e = (z - z.amax(dim, keepdim=True)).exp()
    return e / e.sum(dim, keepdim=True)


class Pooling(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.score = nn.Linear(width, 1)
        self.head = nn.Linear(width, classes)

    def forward(self, words):
        weights = softmax(self.score(words), 1)
        return self.head((weights * words).sum(1))


words, labels = torch.randn(64, 7, 12), torch.randint(0, 5, (64,))
model = Pooling(12, 5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
# %%
for epoch in range(4):
    for batch, target in zip(words.split(16), labels.split(16)):
        scores = model(batch)
        loss = F.cross_entropy(scores, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        confidence = softmax(scores.detach(), 1).amax(1).mean()
# %%
for epoch in range(4):
    probabilities = softmax(model(words), 1)
    likelihood = probabilities[torch.arange(64), labels].log().mean()
    optimizer.zero_grad()
    (-likelihood).backward()
    optimizer.step()
