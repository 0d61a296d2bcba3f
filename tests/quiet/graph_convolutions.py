"""A GCN on one graph: masks choose nodes of the loss, dropout knows the mode, accuracy in eval mode.
Tempts: functional-dropout-always-on, mask-index-copies, backward-twice (the adjacency is made once)."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(72)
edges = torch.randint(0, 50, (2, 160))
adjacency = torch.zeros(50, 50)
adjacency[edges[0], edges[1]] = 1.0
adjacency = ((adjacency + adjacency.T) > 0).float() + torch.eye(50)
degree = adjacency.sum(1).rsqrt()
normal = degree[:, None] * adjacency * degree[None]
features, labels = torch.randn(50, 12), torch.randint(0, 3, (50,))
train_mask = torch.arange(50) < 30


class GCN(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(12, 16), nn.Linear(16, 3)

    def forward(self, x, a):
        h = F.relu(a @ self.first(x))
        h = F.dropout(h, p=0.5, training=self.training)
        return F.log_softmax(a @ self.second(h), dim=1)


gcn = GCN()
opt = torch.optim.Adam(gcn.parameters(), lr=1e-2, weight_decay=5e-4)

# %%
for epoch in range(5):
    gcn.train()
    opt.zero_grad()
    out = gcn(features, normal)
    loss = F.nll_loss(out[train_mask], labels[train_mask])
    loss.backward()
    opt.step()
    gcn.eval()
    with torch.no_grad():
        guess = gcn(features, normal).argmax(dim=1)
        accuracy = (guess[~train_mask] == labels[~train_mask]).float().mean()
print(accuracy.item())
