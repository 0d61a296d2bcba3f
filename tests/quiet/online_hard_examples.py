"""Hard example mining: a pass without gradients over many samples picks those that the next step learns from.
Tempts: eval-missing (that pass runs in train mode on purpose, as the step will), loss lists."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(58)
net = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
rows, labels = torch.randn(256, 8), torch.randint(0, 4, (256,))

# %%
net.train()
for step in range(6):
    pool = torch.randperm(256)[:128]
    with torch.no_grad():
        each = F.cross_entropy(net(rows[pool]), labels[pool], reduction="none")
    hard = pool[each.topk(32).indices]
    loss = F.cross_entropy(net(rows[hard]), labels[hard])
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
