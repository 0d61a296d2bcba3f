"""A linear-chain CRF: log-partition by logsumexp along tags, scores picked by index; learned transitions.
Tempts: softmax-over-batch, broadcast-blowup, graph-cut."""

# %%
import torch
from torch import nn

torch.manual_seed(52)


class Tagger(nn.Module):
    def __init__(self, words=40, tags=5):
        super().__init__()
        self.embed, self.emit = nn.Embedding(words, 16), nn.Linear(16, tags)
        self.moves = nn.Parameter(torch.zeros(tags, tags))

    def loss(self, words, tags):
        scores = self.emit(self.embed(words))
        alpha = scores[:, 0]
        for t in range(1, scores.shape[1]):
            alpha = torch.logsumexp(alpha.unsqueeze(2) + self.moves, dim=1) + scores[:, t]
        gold = scores.gather(2, tags.unsqueeze(2)).squeeze(2).sum(1) + self.moves[tags[:, :-1], tags[:, 1:]].sum(1)
        return (torch.logsumexp(alpha, dim=1) - gold).mean()


tagger = Tagger()
opt = torch.optim.SGD(tagger.parameters(), lr=0.1)
text, wanted = torch.randint(0, 40, (32, 7)), torch.randint(0, 5, (32, 7))

# %%
for epoch in range(4):
    opt.zero_grad()
    loss = tagger.loss(text, wanted)
    loss.backward()
    nn.utils.clip_grad_norm_(tagger.parameters(), 5.0)
    opt.step()
print(loss.item())
