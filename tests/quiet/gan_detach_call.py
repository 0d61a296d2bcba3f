"""A GAN in the older idiom: fakes come with their graph, the discriminator sees fake.detach(), the generator fake.
Tempts: eval-without-no-grad, zero-grad-misplaced (the judge's left-over gradients are cleared unused)."""

# %%
import torch
from torch import nn


class Forger(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 48), nn.BatchNorm1d(48), nn.ReLU(), nn.Linear(48, 20))

    def forward(self, noise):
        return self.layers(noise).tanh()


torch.manual_seed(8)
coins = torch.randn(320, 20).tanh()
forger = Forger()
expert = nn.Sequential(nn.Linear(20, 48), nn.LeakyReLU(0.2), nn.Linear(48, 1))
optimizers = {
    "forger": torch.optim.Adam(forger.parameters(), lr=1e-3),
    "expert": torch.optim.Adam(expert.parameters(), lr=1e-3),
}

# %%
for real in coins.split(32):
    fake = forger(torch.randn(32, 8))
    expert.zero_grad()
    real_score, fake_score = expert(real), expert(fake.detach())
    (nn.functional.softplus(-real_score).mean() + nn.functional.softplus(fake_score).mean()).backward()
    optimizers["expert"].step()

    forger.zero_grad()
    nn.functional.softplus(-expert(fake)).mean().backward()
    optimizers["forger"].step()
print(real_score.mean().item() - fake_score.mean().item())
