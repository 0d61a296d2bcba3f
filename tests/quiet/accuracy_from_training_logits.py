"""Running accuracy is read from the logits of the training step itself, under no_grad, without another forward pass.
Tempts: eval-missing (metrics in train mode), graph-retained-in-list (predictions are collected over the epoch)."""

# %%
import torch
from torch import nn

torch.manual_seed(85)
wool = torch.randn(160, 10)
breed = wool[:, :4].argmax(1)
shepherd = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 4))
optimizer = torch.optim.Adam(shepherd.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss()

# %%
for epoch in range(3):
    guesses, losses = [], []
    for x, y in zip(wool.split(32), breed.split(32), strict=True):
        logits = shepherd(x)
        loss = criterion(logits, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            guesses.append(logits.argmax(1))
            losses.append(loss.detach() * len(y))
    accuracy = (torch.cat(guesses) == breed).float().mean()
    print(epoch, round(accuracy.item(), 3), round(torch.stack(losses).sum().item() / len(breed), 3))
