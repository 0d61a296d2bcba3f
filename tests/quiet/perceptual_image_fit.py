"""An image is optimised against the features of a frozen network in eval mode; the graph is large and is used.
Tempts: eval-without-no-grad, train-not-restored (eval mode, steps, megabytes of graph each time)."""

# %%
import torch
from torch import nn

torch.manual_seed(71)
features = nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU()
)
features.eval().requires_grad_(False)
style = torch.rand(1, 3, 64, 64)


def gram(maps):
    flat = maps.flatten(2)
    return flat @ flat.transpose(1, 2) / flat.shape[-1] ** 0.5


# %%
with torch.no_grad():
    wanted = gram(features(style))
canvas = torch.rand(1, 3, 64, 64, requires_grad=True)
brush = torch.optim.Adam([canvas], lr=0.02)
for _ in range(8):
    brush.zero_grad()
    loss = nn.functional.mse_loss(gram(features(canvas)), wanted)
    loss.backward()
    brush.step()
    with torch.no_grad():
        canvas.clamp_(0, 1)
print(loss.item())
