# needs: torch
# Matrix products and a convolution on two threads, and threads of Python that compute beside each other.
from concurrent.futures import ThreadPoolExecutor
import torch
torch.set_num_threads(2)
product = torch.arange(250_000, dtype=torch.float64).reshape(500, 500) % 7
total = sum((product @ (product + step)).sum().item() for step in range(5))
convolution = torch.nn.functional.conv2d(torch.ones(4, 3, 64, 64), torch.full((8, 3, 3, 3), 0.5)).sum().item()
with ThreadPoolExecutor(4) as pool:
    sums = list(pool.map(lambda step: torch.full((1000, 1000), float(step)).sum().item(), range(8)))
open("submission.csv", "w").write(f"{total:.0f} {convolution:.0f} {sums}\n")
