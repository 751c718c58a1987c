"""Makes forks of what has imported the packages cheap. Nearly all that a fork and its end cost is page tables: of what packages
hold, a hundred megabytes and more, every page of 4 KB is an entry that is copied and freed again, but a huge page of 2 MB is one.
"""

import ctypes
import gc

from linux import libc

HUGE_PAGE_BYTES = 2 << 20
MADV_DONTNEED, MADV_HUGEPAGE, MADV_COLLAPSE = 4, 14, 25
# Python's small objects live in arenas of 1 MB, each wherever there is room among the libraries that are being loaded, where
# few huge pages fit. Those that are there before the first import lie side by side. A little less than what the default
# packages need (55 MB); an arena that stays empty is given back.
RESERVED_BYTES = 48 << 20
OBJECT_BYTES = 480  # of bytes(440), with its header and what it is rounded up to; larger than 512 is not in an arena
OBJECTS_TO_KEEP_AN_ARENA = 2000  # one of so many: fewer than fit into one arena


def reserve():
    """Before packages are imported. Returns what has to be kept until they are."""
    objects = [None] * (RESERVED_BYTES // OBJECT_BYTES)  # whole at once: a list that grows would lie between the arenas
    for index in range(len(objects)):
        objects[index] = bytes(440)
    return objects[::OBJECTS_TO_KEEP_AN_ARENA]


def settle(proc):
    """Once they are imported, and what was reserved is let go. `proc`: where /proc is mounted."""
    gc.collect()
    gc.freeze()  # else the first collection in a child copies every page
    gc.disable()
    with open(f"{proc}/self/maps") as table:
        mappings = [line.split() for line in table]
    for bounds, mode, _, _, inode, *path in mappings:
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        if mode.startswith("rw") and path in ([], ["[heap]"]):
            _use_huge_pages(start, end)
        elif mode == "r-xp" and inode != "0":
            _advise(start, end - start, MADV_DONTNEED)  # code that imports have run: a fork maps what it runs itself


def _use_huge_pages(start, end):
    """Moves this process's own memory into huge pages where the kernel can (Linux >= 6.1). Without effect elsewhere."""
    for address in range(-(-start // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end - HUGE_PAGE_BYTES + 1, HUGE_PAGE_BYTES):
        for advice in (MADV_HUGEPAGE, MADV_COLLAPSE):
            _advise(address, HUGE_PAGE_BYTES, advice)


def _advise(address, length, advice):
    libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), advice)
