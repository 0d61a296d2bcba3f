"""A skeleton of the model on the meta device counts parameters and shapes; the real one is filled from a state dict.
Tempts: device-mismatch (two copies of one model on two devices), optimizer-of-another-model."""

# %%
import torch
from torch import nn


def shipping_model():
    return nn.Sequential(nn.Linear(12, 48), nn.ReLU(), nn.Linear(48, 3))


with torch.device("meta"):
    skeleton = shipping_model()
print(sum(p.numel() for p in skeleton.parameters()), skeleton(torch.empty(5, 12, device="meta")).shape)

# %%
torch.manual_seed(78)
source = shipping_model()
skeleton.load_state_dict(source.state_dict(), assign=True)
optimizer = torch.optim.Adam(skeleton.parameters(), lr=1e-2)

# %%
crates, port = torch.randn(90, 12), torch.randint(0, 3, (90,))
for x, y in zip(crates.split(30), port.split(30), strict=True):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(skeleton(x), y)
    loss.backward()
    optimizer.step()
print(loss.item(), skeleton[0].weight is source[0].weight)
