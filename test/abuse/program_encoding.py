# -*- coding: zip -*-
# Names a codec that is none for text, in the hope that the source is decompressed or executed while it is decoded.
print("BREACH")
