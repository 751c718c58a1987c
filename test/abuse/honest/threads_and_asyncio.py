# Thread pools, an event loop, queues.
import asyncio, concurrent.futures, queue, threading
with concurrent.futures.ThreadPoolExecutor(8) as pool:
    total = sum(pool.map(lambda x: x * x, range(100)))
async def main():
    return sum(await asyncio.gather(*[asyncio.sleep(0.001, x) for x in range(10)]))
open("submission.csv", "w").write(f"{total} {asyncio.run(main())}")
