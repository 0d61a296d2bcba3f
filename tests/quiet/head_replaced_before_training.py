"""A model is loaded, its head replaced, the body frozen and in eval mode; only then comes the optimizer.
Tempts: optimizer-of-another-model, checkpoint-keys-ignored, frozen-batchnorm-drifts, train-not-restored."""

# %%
import io

import torch
from torch import nn

torch.manual_seed(69)


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(10, 24), nn.BatchNorm1d(24), nn.ReLU())
        self.fc = nn.Linear(24, classes)

    def forward(self, x):
        return self.fc(self.features(x))


file = io.BytesIO()
torch.save(Classifier(100).state_dict(), file)
file.seek(0)

# %%
model = Classifier(100)
model.load_state_dict(torch.load(file, map_location="cpu"))
for p in model.parameters():
    p.requires_grad = False
model.fc = nn.Linear(model.fc.in_features, 3)
optimizer = torch.optim.SGD(model.fc.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)

# %%
x, y = torch.randn(90, 10), torch.randint(0, 3, (90,))
for epoch in range(4):
    model.train()
    model.features.eval()
    for xb, yb in zip(x[:60].split(20), y[:60].split(20), strict=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(xb), yb).backward()
        optimizer.step()
    scheduler.step()
    model.eval()
    with torch.no_grad():
        right = (model(x[60:]).argmax(1) == y[60:]).float().mean().item()
print(right)
