"""A GAN whose generator has BatchNorm; the fakes for the discriminator's turn are drawn under no_grad in train mode.
Tempts: eval-missing, missing-zero-grad (the generator's turn leaves gradients in the discriminator)."""

# %%
import torch
from torch import nn

torch.manual_seed(5)


def ring(count):
    angle = torch.rand(count) * 6.2832
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(count, 2)


painter = nn.Sequential(nn.Linear(4, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
judge = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Dropout(0.1), nn.Linear(32, 1))
painter_opt = torch.optim.Adam(painter.parameters(), lr=2e-3, betas=(0.5, 0.99))
judge_opt = torch.optim.Adam(judge.parameters(), lr=2e-3, betas=(0.5, 0.99))
bce = nn.BCEWithLogitsLoss()
real_label, fake_label = torch.ones(64, 1), torch.zeros(64, 1)

# %%
for _ in range(20):
    with torch.no_grad():
        fake = painter(torch.randn(64, 4))
    judge_opt.zero_grad()
    judge_loss = bce(judge(ring(64)), real_label) + bce(judge(fake), fake_label)
    judge_loss.backward()
    judge_opt.step()

    painter_opt.zero_grad()
    painter_loss = bce(judge(painter(torch.randn(64, 4))), real_label)
    painter_loss.backward()
    painter_opt.step()

# %%
painter.eval()
with torch.no_grad():
    drawing = painter(torch.randn(256, 4))
painter.train()
print(drawing.norm(dim=1).mean().item(), judge_loss.item(), painter_loss.item())
