"""A transformer-like block with softmax attention in the middle and logits at the end, then cross entropy.
Tempts: softmax-before-cross-entropy (a softmax upstream of the loss that is not its input)."""

# %%
import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, 3 * width)
        self.scale = width**-0.5

    def forward(self, x):
        query, key, value = self.project(x).chunk(3, dim=-1)
        weight = torch.softmax(query @ key.transpose(1, 2) * self.scale, dim=-1)
        return x + weight @ value


class Tagger(nn.Module):
    def __init__(self, words, width, tags):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.attend = SelfAttention(width)
        self.pool = nn.Linear(width, 1)
        self.out = nn.Linear(width, tags)

    def forward(self, tokens):
        x = self.attend(self.embed(tokens))
        share = self.pool(x).softmax(dim=1)
        return self.out((share * x).sum(1))


# %%
torch.manual_seed(40)
letters = torch.randint(0, 30, (96, 9))
department = letters[:, 0] % 4
tagger = Tagger(30, 24, 4)
optimizer = torch.optim.AdamW(tagger.parameters(), lr=1e-2)
for _ in range(12):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(tagger(letters), department)
    loss.backward()
    optimizer.step()
print(loss.item())

# %%
with torch.no_grad():
    confidence = tagger(letters).softmax(dim=1).amax(1)
print(confidence.mean().item())
