"""Attention with dropout that follows the mode: by an expression, a variable, an early return, a helper, or a rate set to 0.
Tempts: functional-dropout-always-on."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(17)
tokens, wanted = torch.randn(24, 6, 16), torch.randint(0, 4, (24,))


def attend(query, key, value, rate=0.0):
    return F.scaled_dot_product_attention(query, key, value, dropout_p=rate)


class Mixer(nn.Module):
    def __init__(self, way, rate=0.2):
        super().__init__()
        self.way, self.rate = way, rate
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def mixed(self, query, key, value):
        if not self.training:
            return F.scaled_dot_product_attention(query, key, value)
        return F.scaled_dot_product_attention(query, key, value, dropout_p=self.rate)

    def forward(self, rows):
        query, key, value = self.qkv(rows).chunk(3, dim=-1)
        rate = self.rate if self.training else 0.0
        if self.way == "helper":
            return self.out(attend(query, key, value, self.rate * self.training))
        if self.way == "early":
            return self.out(self.mixed(query, key, value))
        return self.out(F.scaled_dot_product_attention(query, key, value, dropout_p=rate))


class Quieted(nn.Module):
    def __init__(self):
        super().__init__()
        self.rate, self.qkv = 0.3, nn.Linear(16, 48)

    def train(self, mode=True):
        self.rate = 0.3 if mode else 0.0
        return super().train(mode)

    def forward(self, rows):
        query, key, value = self.qkv(rows).chunk(3, dim=-1)
        return F.scaled_dot_product_attention(query, key, value, dropout_p=self.rate)


# %%
net = nn.Sequential(Mixer("helper"), Mixer("early"), Mixer("variable"), Quieted())
head = nn.Linear(16, 4)
optimizer = torch.optim.Adam([*net.parameters(), *head.parameters()], lr=1e-3)
for _ in range(6):
    optimizer.zero_grad()
    F.cross_entropy(head(net(tokens).mean(1)), wanted).backward()
    optimizer.step()

# %%
net.eval()
with torch.inference_mode():
    guesses = head(net(tokens).mean(1)).argmax(1)
print((guesses == wanted).float().mean().item())
