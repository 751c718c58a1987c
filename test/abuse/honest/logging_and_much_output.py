# A progress line for each of many steps, logging to a file and to stderr: a megabyte in all.
import logging, sys
logging.basicConfig(level=logging.INFO, stream=sys.stderr)
logging.getLogger().addHandler(logging.FileHandler("run.log"))
for step in range(5000):
    print(f"step {step} loss {1 / (step + 1):.6f}", "." * 100)
    if step % 100 == 0:
        logging.info("step %d", step)
open("submission.csv", "w").write(str(sum(1 for _ in open("run.log"))))
