"""Segmentation with BCE plus soft dice on sigmoid outputs; hard masks are only for the score.
Tempts: sigmoid-before-bce-logits (the sigmoid is for the other term), graph-cut, eval without labels."""

# %%
import torch
from torch import nn

torch.manual_seed(53)


class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.middle = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU())
        self.up, self.out = nn.ConvTranspose2d(16, 8, 2, 2), nn.Conv2d(16, 1, 1)

    def forward(self, x):
        skip = self.down(x)
        return self.out(torch.cat([self.up(self.middle(skip)), skip], dim=1))


unet = TinyUNet()
opt = torch.optim.Adam(unet.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
pictures = torch.rand(12, 1, 16, 16)
masks = (pictures > 0.6).float()


def dice_loss(logits, mask, smooth=1.0):
    p = torch.sigmoid(logits).flatten(1)
    m = mask.flatten(1)
    return 1 - ((2 * (p * m).sum(1) + smooth) / (p.sum(1) + m.sum(1) + smooth)).mean()


# %%
for epoch in range(2):
    unet.train()
    for x, m in zip(pictures[:8].split(4), masks[:8].split(4), strict=True):
        logits = unet(x)
        loss = bce(logits, m) + dice_loss(logits, m)
        opt.zero_grad()
        loss.backward()
        opt.step()
    unet.eval()
    with torch.no_grad():
        hard = (torch.sigmoid(unet(pictures[8:])) > 0.5).float()
        iou = (hard * masks[8:]).sum() / ((hard + masks[8:]) > 0).sum()
print(iou.item())
