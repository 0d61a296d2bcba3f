"""The largest table that fits is searched for from above: failures to allocate are caught and answered."""

# %%
import torch

torch.manual_seed(0)
stars = torch.randn(500, 6)


def closest(points, rows):
    spare = torch.empty(rows, len(points))
    found = [
        torch.cdist(
            some,
            points,
        )
        .topk(2, largest=False)
        .indices[:, 1]
        for some in points.split(min(rows, 100))
    ]
    return torch.cat(found), spare.numel()


# %%
rows, failures = 10**12, 0
while True:
    try:
        nearest, used = closest(stars, rows)
        break
    except RuntimeError as error:
        if "allocate memory" not in str(error):
            raise
        failures += 1
        rows = max(rows // 10**5, 100)
