# needs: torch
# A DataLoader with two worker processes, which hand tensors over in shared memory, and that by sockets: cannot work.
import torch
from torch.utils.data import DataLoader, TensorDataset
if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    data = TensorDataset(torch.arange(100, dtype=torch.float32).reshape(50, 2))
    total = sum(x.sum().item() for (x,) in DataLoader(data, batch_size=8, num_workers=2))
    open("submission.csv", "w").write(f"{total:.2f}\n")
