"""A language model carries its state from batch to batch, cut from its history each time; text is sampled at the end.
Tempts: hidden-state-not-detached, eval-missing, train-not-restored."""

# %%
import torch
from torch import nn

torch.manual_seed(54)


class CharLM(nn.Module):
    def __init__(self, vocabulary=20, width=24):
        super().__init__()
        self.embed, self.rnn = nn.Embedding(vocabulary, width), nn.LSTM(width, width, 2, dropout=0.1, batch_first=True)
        self.drop, self.head = nn.Dropout(0.2), nn.Linear(width, vocabulary)

    def forward(self, tokens, state):
        out, state = self.rnn(self.drop(self.embed(tokens)), state)
        return self.head(self.drop(out)), state

    def blank(self, batch):
        return tuple(next(self.parameters()).new_zeros(2, batch, 24) for _ in range(2))


def repackage(state):
    return tuple(part.detach() for part in state)


def train(model, text, opt, span=8):
    model.train()
    state, total = model.blank(len(text)), 0.0
    for start in range(0, text.shape[1] - 1, span):
        x = text[:, start : start + span]
        y = text[:, start + 1 : start + span + 1]
        x = x[:, : y.shape[1]]
        state = repackage(state)
        opt.zero_grad()
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits.reshape(-1, 20), y.reshape(-1))
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        opt.step()
        total += loss.item() * y.shape[1]
    return total / (text.shape[1] - 1)


def sample(model, length=10):
    model.eval()
    token, state, written = torch.zeros(1, 1, dtype=torch.long), model.blank(1), []
    with torch.no_grad():
        for _ in range(length):
            logits, state = model(token, state)
            token = torch.multinomial(torch.softmax(logits[:, -1] / 0.8, dim=-1), 1)
            written.append(token.item())
    return written


# %%
lm = CharLM()
optimizer = torch.optim.SGD(lm.parameters(), lr=1.0)
text = torch.randint(0, 20, (4, 41))
for epoch in range(2):
    print(train(lm, text, optimizer), sample(lm))
