"""Transfer learning: the backbone is frozen and kept in eval by an overridden train(), the optimizer has the head only.
Tempts: train-not-restored, optimizer-of-another-model (most parameters are in no optimizer)."""

# %%
import torch
from torch import nn


class Birdwatcher(nn.Module):
    def __init__(self, species):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten()
        )
        self.head = nn.Linear(32, species)
        for parameter in self.backbone.parameters():
            parameter.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        self.backbone.eval()
        return self

    def forward(self, photo):
        return self.head(self.backbone(photo))


torch.manual_seed(17)
photos, species = torch.rand(96, 3, 12, 12), torch.randint(0, 4, (96,))
watcher = Birdwatcher(4)
optimizer = torch.optim.SGD(watcher.head.parameters(), lr=0.1, momentum=0.9)

# %%
for epoch in range(3):
    watcher.train()
    for batch, label in zip(photos.split(32), species.split(32), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(watcher(batch), label).backward()
        optimizer.step()
    watcher.eval()
    with torch.no_grad():
        hits = (watcher(photos).argmax(1) == species).float().mean()
    print(epoch, hits.item())
