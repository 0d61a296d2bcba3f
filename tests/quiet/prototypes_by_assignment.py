"""SwAV: codes by Sinkhorn iterations without gradients, each view predicts the codes of the other.
Tempts: softmax-over-batch, eval-missing, data-attribute (prototypes are normalised in place)."""

# %%

import torch
from torch import nn

torch.manual_seed(80)
enc = nn.Linear(8, 16)
proto = nn.Linear(16, 6, bias=False)
opt = torch.optim.SGD([*enc.parameters(), *proto.parameters()], 0.1)


@torch.no_grad()
def sinkhorn(s, it=3):
    q = torch.exp(s / 0.05).t()
    q /= q.sum()
    for _ in range(it):
        q /= q.sum(1, keepdim=True)
        q /= q.shape[0]
        q /= q.sum(0, keepdim=True)
        q /= q.shape[1]
    return (q * q.shape[1]).t()


# %%

for _ in range(4):
    with torch.no_grad():
        proto.weight.copy_(nn.functional.normalize(proto.weight, dim=1))
    x = torch.randn(32, 8)
    z1, z2 = (nn.functional.normalize(enc(x + 0.1 * torch.randn_like(x)), dim=1) for _ in range(2))
    s1, s2 = proto(z1), proto(z2)
    q1, q2 = sinkhorn(s1), sinkhorn(s2)
    loss = -0.5 * ((q1 * (s2 / 0.1).log_softmax(1)).sum(1) + (q2 * (s1 / 0.1).log_softmax(1)).sum(1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
