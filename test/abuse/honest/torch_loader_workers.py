# needs: torch
# A DataLoader with two worker processes, which hand over tensors, of several types, in tuples and by name.
import torch
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __len__(self):
        return 50

    def __getitem__(self, index):
        return {"x": torch.full((3, 32, 32), float(index)), "y": index % 3, "name": str(index)}


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    total, names = 0.0, []
    for batch in DataLoader(Pictures(), batch_size=8, num_workers=2, persistent_workers=True):
        total += batch["x"].mean().item() + batch["y"].sum().item()
        names += batch["name"]
    open("submission.csv", "w").write(f"{total:.2f} {'-'.join(names)}\n")
