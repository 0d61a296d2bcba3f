"""Names are deleted: to tidy up, because a dataset has the object now, between experiments, and with all that holds it.
Tempts: deleted-name-still-referenced, cycle-holds-tensors, old-model-still-alive."""

# %%
import gc

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(52)
signals = torch.randn(4096, 256)
targets = signals[:, :1].sign()
loader = DataLoader(TensorDataset(signals, targets), batch_size=512)

# %%
del signals, targets
gc.collect()


# %%
def experiment(width):
    net = nn.Sequential(nn.Linear(256, width), nn.ReLU(), nn.Linear(width, 1))
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.soft_margin_loss(net(x), y)
        loss.backward()
        optimizer.step()
    return net, optimizer, loss.item()


net, optimizer, last = experiment(1024)

# %%
weights = {name: tensor.clone() for name, tensor in net.state_dict().items()}
del net, optimizer
gc.collect()

# %%
for width in (1024, 2048):
    net, optimizer, last = experiment(width)
    print(width, last)
    del net, optimizer
    gc.collect()

# %%
net, optimizer, last = experiment(2048)
body = net[0]

# %%
net = optimizer = None
gc.collect()
