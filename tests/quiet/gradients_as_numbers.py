"""Gradients of inputs that are meant as numbers: attacks, weights of losses, targets of a known law, surrogates.
Tempts: graph-cut (`torch.autograd.grad` without `create_graph` before a loss)."""

# %%
import torch
from torch import nn
import torch.nn.functional as F

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 2))
opt = torch.optim.Adam(net.parameters(), 1e-3)
x, y = torch.randn(64, 2), torch.randint(0, 2, (64,))


# %%  adversarial training
def fgsm(model, x, y, eps=0.1):
    x = x.clone().requires_grad_(True)
    (g,) = torch.autograd.grad(F.cross_entropy(model(x), y), x)
    return (x + eps * g.sign()).detach()


def pgd(model, x, y, eps=0.1):
    x_adv = x.clone().requires_grad_(True)
    for _ in range(2):
        g = torch.autograd.grad(F.cross_entropy(model(x_adv), y), x_adv)[0]
        x_adv = x_adv + 0.01 * g.sign()
    return x_adv


for step in range(6):
    opt.zero_grad()
    loss = (
        F.cross_entropy(net(x), y) + F.cross_entropy(net(fgsm(net, x, y)), y) + F.cross_entropy(net(pgd(net, x, y)), y)
    )
    loss.backward()
    opt.step()
# %% VAT
for step in range(6):
    d = torch.randn_like(x).requires_grad_(True)
    p = net(x).softmax(1).detach()
    kl = F.kl_div(net(x + 1e-1 * d).log_softmax(1), p, reduction="batchmean")
    g = torch.autograd.grad(kl, d)[0]
    r = g / (g.norm(dim=1, keepdim=True) + 1e-8)
    vat = F.kl_div(net(x + r).log_softmax(1), p, reduction="batchmean")
    loss = F.cross_entropy(net(x), y) + vat
    opt.zero_grad()
    loss.backward()
    opt.step()
# %% adaptive weight (VQGAN): wrt activations
body, head = net[:2], net[2]
for step in range(6):
    h = body(x)
    rec = h.pow(2).mean()
    adv = F.cross_entropy(head(h), y)
    ga = torch.autograd.grad(rec, h, retain_graph=True)[0]
    gb = torch.autograd.grad(adv, h, retain_graph=True)[0]
    weight = ga.norm() / (gb.norm() + 1e-4)
    total = rec + weight * adv
    opt.zero_grad()
    total.backward()
    opt.step()


# %% known function's slope as target
def potential(q):
    return (q**2).sum(1)


for step in range(6):
    q = torch.randn(32, 2, requires_grad=True)
    force = -torch.autograd.grad(potential(q).sum(), q)[0]
    mse = F.mse_loss(net(q), force)
    opt.zero_grad()
    mse.backward()
    opt.step()
# %% synthetic gradients / latent step
z = torch.randn(8, 2, requires_grad=True)
for step in range(6):
    e = net(z).pow(2).sum()
    g = torch.autograd.grad(e, z)[0]
    z = (z - 0.1 * g).detach().requires_grad_(True)
    energy = net(z).pow(2).mean() - net(torch.randn(8, 2)).pow(2).mean()
    opt.zero_grad()
    energy.backward()
    opt.step()
# %% REINFORCE style surrogate: gradient times parameters' output
for step in range(6):
    out = net(x)
    fixed = out.detach().requires_grad_(True)
    g = torch.autograd.grad(F.cross_entropy(fixed, y), fixed)[0]
    surrogate = (out * g).sum()
    opt.zero_grad()
    surrogate.backward()
    opt.step()
# %% gradient penalty right
for step in range(6):
    xi = x.clone().requires_grad_(True)
    s = net(xi)
    g = torch.autograd.grad(s.sum(), xi, create_graph=True)[0]
    loss = s.mean() + 10 * (g.norm(dim=1) - 1).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
# %% logged only
for step in range(6):
    xi = x.clone().requires_grad_(True)
    loss = F.cross_entropy(net(xi), y)
    gn = torch.autograd.grad(loss, xi, retain_graph=True)[0].norm()
    opt.zero_grad()
    loss.backward()
    opt.step()
    msg = f"{gn.item():.3f} {(loss + gn).item()}"
