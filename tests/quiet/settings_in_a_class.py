"""Settings that a class has, schedules and optimizers of a function that is called for each fold, and objects that are called.
Tempts: epoch-schedule-stepped-per-batch, accumulation-unscaled, broadcast-blowup, view-where-permute-meant."""

# %%
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(23)


class CFG:
    epochs = 12
    batch = 8
    parts = 2
    width = 16
    folds = (0, 1)


class Distance:
    def __init__(self, scale):
        self.scale = scale

    def __call__(self, one, two):
        return ((one - two) * self.scale).abs().sum(-1)


rows, labels = torch.randn(64, 5), torch.randint(0, 2, (64,))
loader = DataLoader(TensorDataset(rows, labels), CFG.batch, shuffle=True)


# %%
def per_epoch(fold):
    net = nn.Sequential(nn.Linear(5, CFG.width), nn.ReLU(), nn.Linear(CFG.width, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 4, 0.1)
    for _ in range(CFG.epochs):
        for batch, wanted in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(batch), wanted).backward()
            optimizer.step()
        schedule.step()
    return net.state_dict()


def per_step(fold):
    net = nn.Sequential(nn.Linear(5, CFG.width), nn.ReLU(), nn.Linear(CFG.width, 2))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, CFG.epochs * len(loader) // CFG.parts)
    for _ in range(CFG.epochs):
        for number, (batch, wanted) in enumerate(loader):
            (nn.functional.cross_entropy(net(batch), wanted) / CFG.parts).backward()
            if (number + 1) % CFG.parts == 0:
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
    return net.state_dict()


# %%
weights = [(per_epoch(fold), per_step(fold)) for fold in CFG.folds]

# %%
distance = Distance(torch.rand(CFG.width))
tokens = torch.randn(4, 6, CFG.width)
heads = tokens.view(4, 6, CFG.width // 4, 4).transpose(1, 2)
near = distance(tokens[0], tokens[1]).argmin()
between = distance(tokens[0][:, None], tokens[1][None])
print(heads.shape, near.item(), between.shape)
