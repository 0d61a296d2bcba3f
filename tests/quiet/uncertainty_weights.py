"""Several tasks weighted by learned uncertainties, which are parameters of their own group.
Tempts: parameters-missing-from-optimizer, signed-sum-loss (the loss may go below zero), accumulation-unscaled."""

# %%
import torch
from torch import nn

torch.manual_seed(59)
trunk, heads = nn.Linear(6, 16), nn.ModuleDict({"depth": nn.Linear(16, 1), "kind": nn.Linear(16, 3)})
log_vars = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in heads})
opt = torch.optim.Adam(
    [
        {"params": [*trunk.parameters(), *heads.parameters()], "weight_decay": 1e-4},
        {"params": log_vars.parameters(), "lr": 1e-2},
    ],
    lr=1e-3,
)
x, depth, kind = torch.randn(64, 6), torch.rand(64), torch.randint(0, 3, (64,))

# %%
for epoch in range(6):
    hidden = torch.relu(trunk(x))
    losses = {
        "depth": nn.functional.mse_loss(heads["depth"](hidden).squeeze(1), depth),
        "kind": nn.functional.cross_entropy(heads["kind"](hidden), kind),
    }
    total = sum(torch.exp(-log_vars[name]) * one + log_vars[name] for name, one in losses.items())
    opt.zero_grad()
    total.backward()
    opt.step()
print({name: v.item() for name, v in log_vars.items()})
