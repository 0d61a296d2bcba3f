"""A small GPT: causal mask as a buffer, warmup by LambdaLR in every step, micro-batches divided by their number.
Tempts: epoch-schedule-stepped-per-batch, accumulation-unscaled, nonfinite (mask of -inf), view-where-permute-meant."""

# %%
import math

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(65)


class CausalSelfAttention(nn.Module):
    def __init__(self, width=32, heads=4, block=16):
        super().__init__()
        self.heads, self.width = heads, width
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.attn_dropout = nn.Dropout(0.1)
        self.register_buffer("bias", torch.tril(torch.ones(block, block)).view(1, 1, block, block))

    def forward(self, x):
        B, T, C = x.size()
        q, k, v = self.c_attn(x).split(self.width, dim=2)
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.bias[:, :, :T, :T] == 0, float("-inf"))
        y = self.attn_dropout(F.softmax(att, dim=-1)) @ v
        return self.c_proj(y.transpose(1, 2).contiguous().view(B, T, C))


class GPT(nn.Module):
    def __init__(self, vocab=30, width=32, block=16):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab, width), nn.Embedding(block, width)
        self.ln, self.attn, self.ln_f = nn.LayerNorm(width), CausalSelfAttention(width), nn.LayerNorm(width)
        self.lm_head = nn.Linear(width, vocab, bias=False)
        self.wte.weight = self.lm_head.weight

    def forward(self, idx, targets=None):
        x = self.wte(idx) + self.wpe(torch.arange(idx.size(1)))
        x = self.ln_f(x + self.attn(self.ln(x)))
        logits = self.lm_head(x)
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)


gpt = GPT()
optimizer = torch.optim.AdamW(gpt.parameters(), lr=6e-4, betas=(0.9, 0.95))
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda it: min(1.0, (it + 1) / 10))
text = torch.randint(0, 30, (400,))


def get_batch():
    ix = torch.randint(len(text) - 16, (4,))
    return torch.stack([text[i : i + 16] for i in ix]), torch.stack([text[i + 1 : i + 17] for i in ix])


@torch.no_grad()
def estimate_loss():
    gpt.eval()
    losses = torch.zeros(3)
    for k in range(3):
        losses[k] = gpt(*get_batch())[1].item()
    gpt.train()
    return losses.mean()


# %%
gradient_accumulation_steps = 4
for it in range(6):
    if it % 3 == 0:
        print(it, estimate_loss())
    for micro_step in range(gradient_accumulation_steps):
        logits, loss = gpt(*get_batch())
        loss = loss / gradient_accumulation_steps
        loss.backward()
    nn.utils.clip_grad_norm_(gpt.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad(set_to_none=True)
