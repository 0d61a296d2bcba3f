"""A small student learns from a trained teacher: softened softmax as target of a KL divergence, plus the hard labels.
Tempts: softmax-before-cross-entropy, train-not-restored (the teacher stays in eval all the time)."""

# %%
import torch
from torch import nn
from torch.nn import functional as F


def mlp(width):
    return nn.Sequential(nn.Linear(10, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 5))


torch.manual_seed(6)
sensors = torch.randn(240, 10)
fault = sensors[:, :5].argmax(1)
teacher, student = mlp(64), mlp(8)

# %%
teacher_opt = torch.optim.Adam(teacher.parameters(), lr=1e-2)
for _ in range(15):
    teacher_opt.zero_grad()
    F.cross_entropy(teacher(sensors), fault).backward()
    teacher_opt.step()
teacher.eval().requires_grad_(False)

# %%
TEMPERATURE = 3.0
student_opt = torch.optim.Adam(student.parameters(), lr=1e-2)
for _ in range(15):
    student_logits, teacher_logits = student(sensors), teacher(sensors)
    soft = F.kl_div(
        F.log_softmax(student_logits / TEMPERATURE, dim=1),
        F.softmax(teacher_logits / TEMPERATURE, dim=1),
        reduction="batchmean",
    )
    loss = 0.7 * TEMPERATURE**2 * soft + 0.3 * F.cross_entropy(student_logits, fault)
    student_opt.zero_grad()
    loss.backward()
    student_opt.step()
print(loss.item())
