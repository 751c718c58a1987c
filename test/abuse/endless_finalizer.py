# Its statements end, but a finalizer runs for ever, and makes itself anew.
import sys, time
class Endless:
    def __del__(self, sys=sys, sleep=time.sleep):
        sys.kept = type(self)()
        while True:
            sleep(0.01)
kept = Endless()
