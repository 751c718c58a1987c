# Watches of epoll are counted by user: one program could use up all that the user's other processes have, and every Node process
# aborts that cannot have another one.
import select
try:
    kept = [select.epoll() for _ in range(100)]
    print("BREACH", len(kept))
except OSError:
    pass
import asyncio, selectors
asyncio.run(asyncio.sleep(0.01))
print("held" if selectors.DefaultSelector is selectors.PollSelector else "BREACH")
