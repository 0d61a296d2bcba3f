"""Two optimizers own the same encoder, each with a head of its own, and take turns.
Tempts: optimizer-of-another-model, missing-zero-grad (the other optimizer clears the encoder's gradients too)."""

# %%
import torch
from torch import nn

torch.manual_seed(25)
clips = torch.randn(120, 16)
speaker, mood = clips[:, :4].argmax(1), clips[:, 4:7].argmax(1)
encoder = nn.Sequential(nn.Linear(16, 24), nn.ReLU())
speaker_head, mood_head = nn.Linear(24, 4), nn.Linear(24, 3)
speaker_opt = torch.optim.Adam([*encoder.parameters(), *speaker_head.parameters()], lr=3e-3)
mood_opt = torch.optim.Adam([*encoder.parameters(), *mood_head.parameters()], lr=3e-3)

# %%
turns = [(speaker_head, speaker, speaker_opt), (mood_head, mood, mood_opt)]
for turn in range(24):
    head, label, optimizer = turns[turn % 2]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(head(encoder(clips)), label)
    loss.backward()
    optimizer.step()
print(loss.item())
