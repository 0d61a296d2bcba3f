"""Sequence to sequence by hand: encoder and decoder have an optimizer each, the loss is a sum over the target's steps.
Tempts: parameters-missing-from-optimizer, hidden-state-not-detached, accumulation-unscaled."""

# %%
import random

import torch
from torch import nn

torch.manual_seed(55)
random.seed(55)
encoder_embed, encoder = nn.Embedding(15, 16), nn.GRU(16, 16)
decoder_embed, decoder, out = nn.Embedding(15, 16), nn.GRU(16, 16), nn.Linear(16, 15)
encoder_opt = torch.optim.SGD([*encoder_embed.parameters(), *encoder.parameters()], lr=0.01)
decoder_parts = nn.ModuleList([decoder_embed, decoder, out])
decoder_opt = torch.optim.SGD(decoder_parts.parameters(), lr=0.01)
criterion = nn.NLLLoss()


def step(source, target, forced):
    encoder_opt.zero_grad()
    decoder_opt.zero_grad()
    hidden, loss = torch.zeros(1, 1, 16), 0
    for word in source:
        _, hidden = encoder(encoder_embed(word).view(1, 1, -1), hidden)
    word = torch.tensor([0])
    for wanted in target:
        output, hidden = decoder(torch.relu(decoder_embed(word)).view(1, 1, -1), hidden)
        log_p = torch.log_softmax(out(output[0]), dim=1)
        loss += criterion(log_p, wanted.view(1))
        word = wanted.view(1) if forced else log_p.topk(1)[1].squeeze(1).detach()
    loss.backward()
    encoder_opt.step()
    decoder_opt.step()
    return loss.item() / len(target)


# %%
losses = []
for i in range(12):
    source = torch.randint(1, 15, (6,))
    losses.append(step(source, source.flip(0), forced=random.random() < 0.5))
print(sum(losses) / len(losses))
