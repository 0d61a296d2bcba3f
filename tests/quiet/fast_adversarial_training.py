"""Adversarial training by one signed step: the first backward call is for the gradient of the images only.
Tempts: zero-grad-misplaced (its other gradients are thrown away), eval-without-no-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(32)
classifier = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
opt = torch.optim.SGD(classifier.parameters(), lr=0.05, momentum=0.9)
pictures, labels = torch.rand(96, 1, 8, 8), torch.randint(0, 4, (96,))

# %%
for epoch in range(2):
    for start in range(0, 96, 32):
        clean, y = pictures[start : start + 32].clone(), labels[start : start + 32]
        clean.requires_grad_(True)
        criterion(classifier(clean), y).backward()
        attacked = (clean + 0.05 * clean.grad.sign()).clamp(0, 1).detach()
        opt.zero_grad()
        loss = criterion(classifier(attacked), y)
        loss.backward()
        opt.step()
print(loss.item())
