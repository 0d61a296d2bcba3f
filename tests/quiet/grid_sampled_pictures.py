"""A spatial transformer: its base grid is a buffer, made for float pictures from bytes.
Tempts: uint8-arithmetic-wraps, tensor-attribute-not-buffer, view-where-permute-meant."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(66)
raw = torch.randint(0, 256, (10, 12, 12, 3), dtype=torch.uint8)


class Warp(nn.Module):
    def __init__(self):
        super().__init__()
        self.locate = nn.Linear(3 * 12 * 12, 6)
        nn.init.zeros_(self.locate.weight)
        self.locate.bias.data.copy_(torch.tensor([1.0, 0, 0, 0, 1, 0]))
        self.read = nn.Linear(3 * 12 * 12, 2)
        self.register_buffer("mean", torch.tensor([0.48, 0.45, 0.4]).view(1, 3, 1, 1))

    def forward(self, x):
        x = x - self.mean
        theta = self.locate(x.flatten(1)).view(-1, 2, 3)
        grid = F.affine_grid(theta, x.size(), align_corners=False)
        return self.read(F.grid_sample(x, grid, align_corners=False).flatten(1))


# %%
warp = Warp()
opt = torch.optim.SGD(warp.parameters(), lr=1e-2)
images = raw.permute(0, 3, 1, 2).float().div(255)
labels = torch.randint(0, 2, (10,))
brighter = (raw.int() + 40).clamp(0, 255).to(torch.uint8)
for _ in range(4):
    opt.zero_grad()
    loss = F.cross_entropy(warp(images), labels)
    loss.backward()
    opt.step()
