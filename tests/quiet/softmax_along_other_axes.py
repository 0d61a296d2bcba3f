"""Attention over the members of a set, a time axis in front, two softmaxes over one table of texts and images.
Tempts: softmax-over-batch, probabilities-in-nll-loss (a softmax along dim 0 or without log in a training step)."""

# %%
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(5)
bags = [torch.randn(int(n), 12) for n in torch.randint(4, 9, (10,))]
labels = torch.randint(0, 3, (10,))


class BagClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.scorer, self.head = nn.Linear(12, 4), nn.Linear(48, 3)

    def forward(self, bag):
        weight = torch.softmax(self.scorer(bag), dim=0)  # along the members of one bag
        return F.log_softmax(self.head((weight.T @ bag).flatten()), dim=0)


# %%
model = BagClassifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    for bag, label in zip(bags, labels, strict=True):
        optimizer.zero_grad()
        loss = F.nll_loss(model(bag), label)
        loss.backward()
        optimizer.step()

# %%
image_side, text_side = nn.Linear(16, 8), nn.Linear(20, 8)
optimizer = torch.optim.Adam([*image_side.parameters(), *text_side.parameters()], lr=1e-2)
images, texts = torch.randn(24, 16), torch.randn(24, 20)
own = torch.arange(24)
for step in range(5):
    optimizer.zero_grad()
    table = F.normalize(image_side(images)) @ F.normalize(text_side(texts)).T * 10
    by_image, by_text = F.log_softmax(table, dim=1), F.log_softmax(table, dim=0)
    loss = -(by_image[own, own] + by_text[own, own]).mean() / 2 + F.nll_loss(by_text, own)
    loss.backward()
    optimizer.step()

# %%
recurrent, speller = nn.GRU(6, 10), nn.Linear(10, 5)
sounds, letters = torch.randn(30, 4, 6), torch.randint(1, 5, (4, 7))
spelled = speller(recurrent(sounds)[0]).log_softmax(2)  # (time, batch, letters)
loss = F.ctc_loss(spelled, letters, torch.full((4,), 30), torch.full((4,), 7))
pointer = nn.Linear(10, 1)(recurrent(sounds)[0]).squeeze(-1).log_softmax(dim=0)  # (time, batch)
loss = loss - pointer.gather(0, torch.randint(0, 30, (1, 4))).mean()
loss.backward()
