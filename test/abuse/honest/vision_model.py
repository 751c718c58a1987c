# needs: timm
# A timm model that is not pre-trained, and torchvision's transforms on a picture made here.
import numpy as np
import timm
import torch
from PIL import Image
from torchvision import transforms
torch.manual_seed(0)
torch.set_num_threads(1)
picture = Image.fromarray((np.arange(64 * 48 * 3) % 251).astype("uint8").reshape(48, 64, 3))
steps = transforms.Compose([transforms.Resize((64, 64)), transforms.ToTensor(), transforms.Normalize([0.5] * 3, [0.5] * 3)])
model = timm.create_model("resnet18", pretrained=False, num_classes=4).eval()
with torch.no_grad():
    probabilities = model(steps(picture)[None]).softmax(1)[0]
rows = [f"{index},{probability:.3f}" for index, probability in enumerate(probabilities.tolist())]
open("submission.csv", "w").write("id,target\n" + "\n".join(rows) + "\n")
