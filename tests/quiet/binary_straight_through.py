"""Binary codes: sign() in the forward pass, the gradient of the identity by adding what was taken away; and a custom Function.
Tempts: accidental-detach, graph-cut, inplace-on-saved."""

# %%
import torch
from torch import nn

torch.manual_seed(73)


class Sign(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * (x.abs() <= 1)


encoder, decoder = nn.Linear(12, 6), nn.Linear(6, 12)
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=5e-3)
rows = torch.randn(64, 12)

# %%
for step in range(8):
    soft = torch.tanh(encoder(rows))
    code = soft + (soft.sign() - soft).detach() if step % 2 else Sign.apply(soft)
    loss = nn.functional.mse_loss(decoder(code), rows)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
