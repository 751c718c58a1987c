# A pickle that runs a command when it is loaded. It is handed in as bytes and never unpickled.
import pickle
class Exploit:
    def __reduce__(self):
        return (open, ("@OUTSIDE@/unpickled", "w"))
pickle.dump(Exploit(), open("submission.csv", "wb"))
