# Ends by sys.exit(0) in a function, after writing.
import sys
def main():
    open("submission.csv", "w").write("done")
    sys.exit(0)
main()
