"""CLIP: scores between all pictures and all captions, cross-entropy along both axes, a learned temperature.
Tempts: softmax-over-batch (one of the two runs along dim 0), parameters-missing-from-optimizer."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(43)


class TwoTowers(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture, self.caption = nn.Linear(20, 8), nn.Embedding(30, 8)
        self.log_scale = nn.Parameter(torch.tensor(2.0))

    def forward(self, pictures, tokens):
        one = F.normalize(self.picture(pictures), dim=-1)
        two = F.normalize(self.caption(tokens).mean(1), dim=-1)
        return self.log_scale.exp() * one @ two.t()


towers = TwoTowers()
opt = torch.optim.AdamW(towers.parameters(), lr=1e-2, weight_decay=0.1)

# %%
for step in range(5):
    logits = towers(torch.randn(24, 20), torch.randint(0, 30, (24, 6)))
    truth = torch.arange(24)
    loss = (F.cross_entropy(logits, truth) + F.cross_entropy(logits.t(), truth)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        towers.log_scale.clamp_(0, 4.6)
print(logits.softmax(0).shape, loss.item())
