"""Saliency by the gradient of a class score with respect to the image; eval mode with a graph, which is used.
Tempts: eval-without-no-grad (eval mode recording a graph of megabytes), missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(35)
plates = torch.rand(24, 3, 32, 32)
letter = torch.randint(0, 6, (24,))
reader = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(128, 6),
)
optimizer = torch.optim.Adam(reader.parameters(), lr=1e-3)
for image, label in zip(plates.split(8), letter.split(8), strict=True):
    optimizer.zero_grad()
    nn.functional.cross_entropy(reader(image), label).backward()
    optimizer.step()


# %%
def saliency(model, images):
    model.eval()
    images = images.clone().requires_grad_(True)
    top_score = model(images).amax(1).sum()
    (gradient,) = torch.autograd.grad(top_score, images)
    return gradient.abs().amax(1)


# %%
maps = saliency(reader, plates)
print(maps.shape, maps.max().item())

# %%
probe = plates[:8].clone().requires_grad_(True)
reader.eval()
reader(probe)[:, 2].sum().backward()
reader.zero_grad()
print(probe.grad.abs().mean().item())
