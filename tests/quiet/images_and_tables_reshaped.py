"""Images as bytes, masks, heads split and merged, tables of all pairs, a metric per batch.
Tempts: view-where-permute-meant, uint8-arithmetic-wraps, assignment-to-indexed-copy, silent-broadcast."""

# %%
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
photos = torch.randint(0, 256, (20, 12, 10, 3), dtype=torch.uint8)
images = photos.permute(0, 3, 1, 2).float() / 255
bright = (photos.sum(3) > 380).to(torch.uint8)
dark = 1 - bright
overlay = bright * 255
labels = torch.randint(0, 2, (20,))
clean = images.clone()
clean[:, :, 0][clean[:, :, 0] > 0.9] = 0.9
clean[labels == 1] *= 0.5


# %%
class Mixer(nn.Module):
    def __init__(self, heads=2):
        super().__init__()
        self.heads = heads
        self.cut, self.project, self.head = nn.Conv2d(3, 8, 2, stride=2), nn.Linear(8, 24), nn.Linear(8, 1)

    def forward(self, x):
        tokens = self.cut(x).flatten(2).transpose(1, 2)
        batch, count, size = tokens.shape
        q, k, v = self.project(tokens).view(batch, count, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, count, size)
        return self.head(mixed.mean(1)).squeeze(1)


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    right = 0
    for xb, yb in loader:
        right += ((model(xb) > 0).long() == yb).sum().item()
    return right / len(loader.dataset)


# %%
model = Mixer()
loader = DataLoader(TensorDataset(clean, labels), batch_size=5)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(xb), yb.float())
        loss.backward()
        optimizer.step()
    share = accuracy(model, loader)

# %%
same = labels.unsqueeze(0) == labels.unsqueeze(1)
places = torch.arange(6).view(6, 1) - torch.arange(6)
lengths = clean.flatten(1).norm(dim=1, keepdim=True)
unlike = lengths - lengths.T
