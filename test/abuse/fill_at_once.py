# Fills the disk as fast as it can, with several threads and files whose space is allocated before they are written.
import os, threading, time
failed = []
def fill(name):
    try:
        for number in range(100):
            descriptor = os.open(f"{name}{number}", os.O_CREAT | os.O_WRONLY)
            os.posix_fallocate(descriptor, 0, 60 << 20)
            os.close(descriptor)
    except OSError as error:
        failed.append(error)
threads = [threading.Thread(target=fill, args=(name,)) for name in "ab"]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
time.sleep(3)
print("held" if len(failed) == 2 else "BREACH")
