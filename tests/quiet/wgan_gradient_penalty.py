"""A Wasserstein critic with gradient penalty: five critic steps per generator step, autograd.grad with create_graph.
Tempts: missing-zero-grad, graph-retained-in-list (the penalty's graph lives inside the loss)."""

# %%
import torch
from torch import nn

torch.manual_seed(1)
critic = nn.Sequential(nn.Linear(3, 32), nn.ELU(), nn.Linear(32, 1))
sampler = nn.Sequential(nn.Linear(2, 32), nn.ELU(), nn.Linear(32, 3))
critic_opt = torch.optim.Adam(critic.parameters(), lr=1e-3, betas=(0.0, 0.9))
sampler_opt = torch.optim.Adam(sampler.parameters(), lr=1e-3, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    mix = torch.rand(len(real), 1)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


# %%
for _ in range(6):
    for _ in range(5):
        real = torch.randn(40, 3) * torch.tensor([1.0, 2.0, 0.5])
        fake = sampler(torch.randn(40, 2)).detach()
        critic_opt.zero_grad()
        critic_loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(real, fake)
        critic_loss.backward()
        critic_opt.step()
    sampler_opt.zero_grad()
    (-critic(sampler(torch.randn(40, 2))).mean()).backward()
    sampler_opt.step()
print(critic_loss.item())
