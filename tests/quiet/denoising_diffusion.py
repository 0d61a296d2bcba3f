"""A toy diffusion model: (N, 1) noise levels times (N, 2) points, an averaged copy in eval mode draws the samples.
Tempts: loss-broadcast, eval-missing, graph-retained-in-list (a trajectory kept under no_grad)."""

# %%
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

torch.manual_seed(83)
STEPS = 12
alpha = torch.linspace(0.999, 0.01, STEPS)
denoiser = nn.Sequential(nn.Linear(3, 48), nn.SiLU(), nn.Dropout(0.05), nn.Linear(48, 2))
smoothed = AveragedModel(denoiser, multi_avg_fn=get_ema_multi_avg_fn(0.9)).eval()
optimizer = torch.optim.AdamW(denoiser.parameters(), lr=3e-3)


def with_level(points, level):
    return torch.cat([points, level.float().unsqueeze(1) / STEPS], dim=1)


# %%
for _ in range(20):
    clean = torch.randn(64, 2).sign() + 0.1 * torch.randn(64, 2)
    level = torch.randint(0, STEPS, (64,))
    signal, noise = alpha[level].unsqueeze(1), torch.randn_like(clean)
    blurred = signal.sqrt() * clean + (1 - signal).sqrt() * noise
    loss = (denoiser(with_level(blurred, level)) - noise).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    smoothed.update_parameters(denoiser)

# %%
points, trajectory = torch.randn(32, 2), []
with torch.no_grad():
    for level in reversed(range(STEPS)):
        noise = smoothed(with_level(points, torch.full((32,), level)))
        clean = (points - (1 - alpha[level]).sqrt() * noise) / alpha[level].sqrt()
        earlier = alpha[max(level - 1, 0)]
        points = earlier.sqrt() * clean.clamp(-2, 2) + (1 - earlier).sqrt() * noise
        trajectory.append(points)
print(len(trajectory), points.abs().mean().item())
