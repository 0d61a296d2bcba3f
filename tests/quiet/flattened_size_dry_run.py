"""An untrained convolutional stack is called once under no_grad in train mode to find its flattened size.
Tempts: eval-missing (BatchNorm and Dropout in train mode, no gradients, before training starts)."""

# %%
import torch
from torch import nn


class Radiograph(nn.Module):
    def __init__(self, side, classes):
        super().__init__()
        self.stack = nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Dropout(0.1), nn.Flatten()
        )
        with torch.no_grad():
            flat = self.stack(torch.zeros(2, 1, side, side)).shape[1]
        self.out = nn.Linear(flat, classes)

    def forward(self, x):
        return self.out(self.stack(x))


# %%
torch.manual_seed(59)
model = Radiograph(14, 3)
with torch.no_grad():
    print(model(torch.zeros(2, 1, 14, 14)).shape)

# %%
plates, finding = torch.rand(60, 1, 14, 14), torch.randint(0, 3, (60,))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for x, y in zip(plates.split(20), finding.split(20), strict=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
model.eval()
with torch.no_grad():
    print((model(plates).argmax(1) == finding).float().mean().item())
