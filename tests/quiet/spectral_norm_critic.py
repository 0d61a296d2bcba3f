"""A hinge GAN whose critic uses spectral normalisation and is frozen during the generator's turn.
Tempts: optimizer-of-another-model (parametrised weights), missing-zero-grad, eval-missing (fakes under no_grad)."""

# %%
import torch
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm

torch.manual_seed(81)
critic = nn.Sequential(spectral_norm(nn.Linear(2, 24)), nn.LeakyReLU(0.2), spectral_norm(nn.Linear(24, 1)))
weaver = nn.Sequential(nn.Linear(3, 24), nn.ReLU(), nn.Linear(24, 2))
critic_opt = torch.optim.Adam(critic.parameters(), lr=2e-3)
weaver_opt = torch.optim.Adam(weaver.parameters(), lr=1e-3)

# %%
for _ in range(12):
    real = torch.randn(48, 2) * 0.3 + torch.tensor([1.0, -1.0])
    critic.requires_grad_(True)
    critic_opt.zero_grad()
    with torch.no_grad():
        fake = weaver(torch.randn(48, 3))
    hinge = nn.functional.relu(1 - critic(real)).mean() + nn.functional.relu(1 + critic(fake)).mean()
    hinge.backward()
    critic_opt.step()

    critic.requires_grad_(False)
    weaver_opt.zero_grad()
    (-critic(weaver(torch.randn(48, 3))).mean()).backward()
    weaver_opt.step()
print(hinge.item())
