"""Three members' probabilities are averaged, then the logarithm goes to NLLLoss: softmax, mean, log, in that order.
Tempts: softmax-before-cross-entropy (softmax before a negative log-likelihood, with the log in between)."""

# %%
import torch
from torch import nn

torch.manual_seed(44)
bells = torch.randn(130, 9)
pitch = bells[:, :3].argmax(1)
members = nn.ModuleList(nn.Sequential(nn.Linear(9, 12), nn.Tanh(), nn.Linear(12, 3)) for _ in range(3))
optimizer = torch.optim.Adam(members.parameters(), lr=1e-2)
nll = nn.NLLLoss()


def committee(x):
    return torch.stack([member(x).softmax(dim=1) for member in members]).mean(0)


# %%
for _ in range(15):
    loss = nll(committee(bells).clamp_min(1e-8).log(), pitch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    print(committee(bells).amax(1).mean().item(), loss.item())
