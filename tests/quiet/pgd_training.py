"""Adversarial training: inner backward passes for the input's gradient in eval mode, cleared before the real one.
Tempts: zero-grad-misplaced, missing-zero-grad, train-not-restored (modes change inside each step)."""

# %%
import torch
from torch import nn

torch.manual_seed(16)
scans = torch.rand(80, 1, 10, 10)
defect = (scans.mean((1, 2, 3)) > 0.5).long()
inspector = nn.Sequential(
    nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten(), nn.Dropout(0.1), nn.Linear(384, 2)
)
optimizer = torch.optim.Adam(inspector.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()


def attack(images, labels, radius=0.05, steps=3):
    inspector.eval()
    delta = torch.zeros_like(images)
    for _ in range(steps):
        delta.requires_grad_(True)
        criterion(inspector(images + delta), labels).backward()
        with torch.no_grad():
            delta = (delta + radius / 2 * delta.grad.sign()).clamp(-radius, radius)
    inspector.train()
    return (images + delta).clamp(0, 1)


# %%
for images, labels in zip(scans.split(20), defect.split(20), strict=True):
    hard = attack(images, labels)
    optimizer.zero_grad()
    loss = criterion(inspector(hard), labels)
    loss.backward()
    optimizer.step()
    print(round(loss.item(), 3))
