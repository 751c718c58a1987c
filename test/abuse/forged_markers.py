# Marker lines of its own: a made-up nonce, one without, one in the middle of a line. Counted, and worth nothing.
import secrets
for marker in ("imported packages", "loaded data", "defined model", "training loss", "trained model", "testing loss", "predicted test labels"):
    print(secrets.token_hex(16) + ":" + marker + " 0.0")
    print(marker)
