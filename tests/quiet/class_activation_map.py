"""Grad-CAM: hooks take the feature map and its gradient of one backward pass in eval mode, and are removed.
Tempts: hook-collects-tensors, eval-without-no-grad, train-not-restored, missing-zero-grad."""

# %%
import torch
from torch import nn

torch.manual_seed(62)
cnn = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(8, 4),
).eval()
found = {}


def keep(name):
    def hook(module, inputs, output):
        found[name] = output.detach()
        output.register_hook(lambda gradient: found.update({f"{name} gradient": gradient.detach()}))

    return hook


# %%
handle = cnn[2].register_forward_hook(keep("features"))
score = cnn(torch.rand(1, 3, 12, 12))
cnn.zero_grad()
score[0, score.argmax()].backward()
handle.remove()
weight = found["features gradient"].mean(dim=(2, 3), keepdim=True)
heat = torch.relu((weight * found["features"]).sum(1))
del score
print(heat.shape)
