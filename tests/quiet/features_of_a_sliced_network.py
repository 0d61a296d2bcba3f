"""A loss compares features of a network that is cut into slices, kept in a plain list; only the picture is learned.
Tempts: modules-in-plain-list, parameters-missing-from-optimizer."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
features = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1), nn.ReLU()).eval()


class FeatureLoss(nn.Module):
    def __init__(self, network):
        super().__init__()
        self.slices = [network[:2], network[2:]]

    def forward(self, picture, goal):
        total = 0.0
        for part in self.slices:
            picture, goal = part(picture), part(goal)
            total = total + F.l1_loss(picture, goal.detach())
        return total


criterion = FeatureLoss(features)

# %%
picture = torch.rand(4, 3, 8, 8, requires_grad=True)
goal = torch.rand(4, 3, 8, 8)
opt = torch.optim.Adam([picture], lr=0.05)
for step in range(5):
    loss = criterion(picture, goal)
    opt.zero_grad()
    loss.backward()
    opt.step()
