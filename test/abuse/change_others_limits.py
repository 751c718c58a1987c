# Changes limits, priority and processors of other processes of the same user: a bystander becomes slow or unable to write.
import os, resource
for action in (lambda: resource.prlimit(@VICTIM@, resource.RLIMIT_NOFILE, (3, 3)),
               lambda: resource.prlimit(@SUPERVISOR@, resource.RLIMIT_FSIZE, (0, 0)),
               lambda: os.setpriority(os.PRIO_PROCESS, @VICTIM@, 19),
               lambda: os.sched_setaffinity(@VICTIM@, {0}),
               lambda: os.sched_setscheduler(@VICTIM@, os.SCHED_IDLE, os.sched_param(0))):
    try:
        action()
        print("BREACH")
    except OSError:
        pass
print("held")
