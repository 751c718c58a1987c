# needs: PIL
# Pillow: draws, writes PNG and JPEG, reads them back, scales.
import numpy as np
from PIL import Image, ImageDraw
image = Image.new("RGB", (64, 64), "white")
ImageDraw.Draw(image).ellipse((8, 8, 56, 56), fill=(200, 30, 30))
image.save("circle.png")
image.save("circle.jpg", quality=90)
small = np.asarray(Image.open("circle.png").resize((8, 8)))
open("submission.csv", "w").write("\n".join(str(int(value)) for value in small.sum(axis=(1, 2))))
