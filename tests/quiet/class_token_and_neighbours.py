"""A class token for each picture, a latent for each query, neighbours picked by number: all by expand.
Tempts: expand-backward-materialises (many repetitions of trained tensors)."""

# %%
import torch
from torch import nn

torch.manual_seed(65)
token, latents = nn.Parameter(torch.zeros(1, 1, 64)), nn.Parameter(torch.randn(1, 16, 64))
embed, attend = nn.Linear(48, 64), nn.MultiheadAttention(64, 4, batch_first=True)
head = nn.Linear(64, 5)
optimizer = torch.optim.Adam([token, latents, *embed.parameters(), *attend.parameters(), *head.parameters()], lr=1e-3)

# %%
for _ in range(3):
    patches, species = torch.randn(400, 9, 48), torch.randint(0, 5, (400,))
    row = torch.cat([token.expand(400, -1, -1), embed(patches)], dim=1)
    read, _ = attend(latents.expand(400, -1, -1), row, row)
    near = read.gather(1, torch.randint(0, 16, (400, 3, 1)).expand(-1, -1, 64))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(read.mean(1) + near.mean(1)), species)
    loss.backward()
    optimizer.step()
print(loss.item())
del patches, row, read, near
