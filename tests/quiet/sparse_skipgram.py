"""Skip-gram with sparse embeddings: SparseAdam for the tables, Adam for the dense scale.
Tempts: optimizer-of-another-model (each of two optimizers has only a part), missing-zero-grad (sparse gradients)."""

# %%
import torch
from torch import nn


class SkipGram(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.centre = nn.Embedding(words, width, sparse=True)
        self.context = nn.Embedding(words, width, sparse=True)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, centre, context):
        return self.scale * (self.centre(centre).unsqueeze(1) * self.context(context)).sum(-1)


torch.manual_seed(48)
model = SkipGram(500, 12)
tables = [model.centre.weight, model.context.weight]
sparse_opt = torch.optim.SparseAdam(tables, lr=1e-2)
dense_opt = torch.optim.Adam([model.scale], lr=1e-2)

# %%
label = torch.cat([torch.ones(64, 1), torch.zeros(64, 4)], dim=1)
for _ in range(10):
    centre = torch.randint(0, 500, (64,))
    context = torch.cat([(centre + 1).remainder(500).unsqueeze(1), torch.randint(0, 500, (64, 4))], dim=1)
    loss = nn.functional.binary_cross_entropy_with_logits(model(centre, context), label)
    for optimizer in (sparse_opt, dense_opt):
        optimizer.zero_grad()
    loss.backward()
    for optimizer in (sparse_opt, dense_opt):
        optimizer.step()
print(loss.item(), model.scale.item())
