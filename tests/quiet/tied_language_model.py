"""A small language model whose output layer shares the embedding's weight; perplexity in eval and no_grad.
Tempts: optimizer-of-another-model (one parameter under two names), missing-zero-grad."""

# %%
import math

import torch
from torch import nn


class TinyLM(nn.Module):
    def __init__(self, vocabulary=28, width=32):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.drop = nn.Dropout(0.1)
        self.out = nn.Linear(width, vocabulary, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        hidden, _ = self.rnn(self.embed(tokens))
        return self.out(self.drop(hidden))


torch.manual_seed(47)
corpus = torch.randint(0, 28, (64, 17))
lm = TinyLM()
optimizer = torch.optim.AdamW(lm.parameters(), lr=5e-3)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=12)


def next_token_loss(batch):
    return nn.functional.cross_entropy(lm(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())


# %%
lm.train()
for _ in range(3):
    for batch in corpus.split(16):
        loss = next_token_loss(batch)
        loss.backward()
        nn.utils.clip_grad_value_(lm.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()

# %%
lm.eval()
with torch.no_grad():
    perplexity = math.exp(next_token_loss(corpus).item())
print(perplexity)
