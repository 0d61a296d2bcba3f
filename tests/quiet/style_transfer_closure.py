"""Style transfer: LBFGS moves the pixels, the network is frozen, targets are detached once.
Tempts: nothing-to-train, inplace-on-leaf, optimizer without parameters of a module."""

# %%

import torch
from torch import nn

torch.manual_seed(80)
vgg = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, padding=1)).eval()
for p in vgg.parameters():
    p.requires_grad_(False)


def gram(f):
    b, c, h, w = f.shape
    f = f.view(b, c, h * w)
    return f @ f.transpose(1, 2) / (c * h * w)


content, style = torch.rand(1, 3, 16, 16), torch.rand(1, 3, 16, 16)
cf = vgg(content).detach()
sg = gram(vgg(style)).detach()
x = content.clone().requires_grad_(True)
opt = torch.optim.LBFGS([x], max_iter=4)

# %%

run = [0]
while run[0] < 8:

    def closure():
        with torch.no_grad():
            x.clamp_(0, 1)
        opt.zero_grad()
        f = vgg(x)
        l = (f - cf).pow(2).mean() + 10 * (gram(f) - sg).pow(2).sum()
        l.backward()
        run[0] += 1
        return l

    opt.step(closure)
