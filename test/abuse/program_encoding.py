# -*- coding: zip -*-
# Names a codec that is no text encoding, so that a reader might decompress or execute the source while decoding it.
print("BREACH")
