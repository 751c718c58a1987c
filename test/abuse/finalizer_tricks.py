# Acts while the interpreter ends: forks, starts threads, takes the modules back, writes after the last flush, removes what ends the process.
import _thread, gc, os, sys
modules = dict(sys.modules)
class Trick:
    def __del__(self, sys=sys, os=os, gc=gc, modules=modules, start=_thread.start_new_thread):
        sys.modules.update(modules)
        for action in (os.fork, lambda: start(print, ()), lambda: gc.get_objects().clear()):
            try:
                action()
            except BaseException:
                pass
        os.write(1, b"held\n")
        for name in list(vars(sys)):
            if name.startswith("_") and not name.startswith("__"):
                try:
                    delattr(sys, name)
                except Exception:
                    pass
tricks = [Trick(), Trick()]
sys.trick = Trick()
