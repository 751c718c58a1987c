# A thread swaps the submission between a file and a link to the answers until the end, so that a check and the following read may see
# different files (time of check, time of use).
import os, threading
open("good.csv", "w").write("id,target\n1,1\n")
os.symlink("@ANSWERS@", "link.csv")
def swap():
    while True:
        for source in ("good.csv", "link.csv"):
            try:
                os.link(source, "next.csv", follow_symlinks=False)
                os.rename("next.csv", "submission.csv")
                os.unlink("submission.csv")
            except OSError:
                pass
threading.Thread(target=swap, daemon=True).start()
import time
time.sleep(0.3)
print("held")
