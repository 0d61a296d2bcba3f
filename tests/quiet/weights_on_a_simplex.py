"""The mean excess over a given series is maximised over shares that a softmax makes: it has a lowest value.
Tempts: signed-sum-loss."""

# %%
import torch

torch.manual_seed(0)
rows = torch.randn(64, 4) * 0.02 + torch.tensor([0.0, 0.01, 0.02, 0.03])
given = rows.mean(1)
scores = torch.zeros(4, requires_grad=True)
opt = torch.optim.Adam([scores], lr=0.1)

# %%
for step in range(20):
    shares = scores.softmax(0)
    loss = (given - rows @ shares).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
shares.detach().tolist()
