"""Label smoothing and focal weights written out: log-softmax, a smooth target, a mean over the samples.
Tempts: double softmax (log-softmax, then probabilities by exp), probabilities-in-nll-loss, loss-broadcast."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(71)
net = nn.Linear(9, 6)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(48, 9), torch.randint(0, 6, (48,))


def smoothed(logits, target, eps=0.1):
    log_p = F.log_softmax(logits, dim=-1)
    nll = F.nll_loss(log_p, target, reduction="none")
    return ((1 - eps) * nll - eps * log_p.mean(-1)).mean()


def focal(logits, target, gamma=2.0):
    log_p = F.log_softmax(logits, dim=1)
    p = log_p.exp()
    chosen = log_p.gather(1, target[:, None]).squeeze(1)
    weight = (1 - p.gather(1, target[:, None]).squeeze(1)) ** gamma
    return -(weight * chosen).mean()


def one_hot_regression(logits, target):
    return F.mse_loss(torch.softmax(logits, 1), F.one_hot(target, 6).float())


# %%
for epoch in range(4):
    for criterion in (smoothed, focal, one_hot_regression):
        opt.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        opt.step()
print(loss.item())
