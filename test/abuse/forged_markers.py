# Prints marker lines: with an invented nonce, without one, in the middle of a line. They are counted and earn nothing.
import secrets
for marker in ("imported packages", "loaded data", "defined model", "training loss", "trained model", "testing loss", "predicted test labels"):
    print(secrets.token_hex(16) + ":" + marker + " 0.0")
    print(marker)
