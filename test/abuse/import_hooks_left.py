# Changes imported modules for the next program: functions, import hooks, exit handlers. It runs twice and looks for its own changes.
import atexit, builtins, json, os, sys
import numpy
changed = [hasattr(numpy, "left"), hasattr(json, "left"), hasattr(os, "left"), hasattr(builtins, "left"), any(type(finder).__name__ == "Left" for finder in sys.meta_path)]
if any(changed):
    print("BREACH", changed)
class Left:
    def find_spec(self, *arguments):
        return None
numpy.left = json.left = os.left = builtins.left = True
sys.meta_path.insert(0, Left())
sys.path.insert(0, os.getcwd())
atexit.register(lambda: None)
print("held")
