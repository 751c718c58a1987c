# The kernel counts epoll watches by user: one program could use up all watches of the user's other processes, and a Node process that gets
# none aborts.
import select
try:
    kept = [select.epoll() for _ in range(100)]
    print("BREACH", len(kept))
except OSError:
    pass
import asyncio, selectors
asyncio.run(asyncio.sleep(0.01))
print("held" if selectors.DefaultSelector is selectors.PollSelector else "BREACH")
