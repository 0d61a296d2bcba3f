"""SimCLR: two noisy views of each sample must find each other among all others; the diagonal is masked with -inf.
Tempts: softmax-over-batch (the rows of a similarity matrix are samples too), nonfinite-loss, double softmax."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(41)
encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
projector = nn.Linear(16, 8)
opt = torch.optim.Adam([*encoder.parameters(), *projector.parameters()], lr=1e-3)
samples = torch.randn(96, 12)


def nt_xent(z1, z2, temperature=0.5):
    z = F.normalize(torch.cat([z1, z2]), dim=1)
    similarity = z @ z.T / temperature
    similarity.fill_diagonal_(float("-inf"))
    n = len(z1)
    partner = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(similarity, partner)


# %%
for epoch in range(3):
    for batch in samples[torch.randperm(96)].split(32):
        views = [projector(encoder(batch + 0.1 * torch.randn_like(batch))) for _ in range(2)]
        loss = nt_xent(*views)
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss.item())
