"""Makes forks of the process that has imported the packages cheap. Page tables are nearly all of the cost of a fork and its end. Packages
hold a hundred megabytes and more: each page of 4 KB is an entry that is copied and freed again, but a huge page of 2 MB is one entry.
"""

import ctypes
import gc

from linux import libc

HUGE_PAGE_BYTES = 2 << 20
MADV_DONTNEED, MADV_HUGEPAGE, MADV_COLLAPSE = 4, 14, 25
# Python's small objects live in arenas of 1 MB. Arenas that are allocated during imports lie scattered among the libraries, where few huge
# pages fit; arenas from before the first import lie side by side. The reserve is a little less than the default packages need (55 MB);
# empty arenas are given back.
RESERVED_BYTES = 48 << 20
OBJECT_BYTES = 480  # size of bytes(440), with its header and rounded up; objects larger than 512 are not in an arena
OBJECTS_TO_KEEP_AN_ARENA = 2000  # keep one object in this many, fewer than fit into one arena, to keep each arena


def reserve():
    """Reserves arenas before packages are imported. Returns an object that must be kept until they are."""
    objects = [None] * (RESERVED_BYTES // OBJECT_BYTES)  # allocated whole: a growing list would lie between the arenas
    for index in range(len(objects)):
        objects[index] = bytes(440)
    return objects[::OBJECTS_TO_KEEP_AN_ARENA]


def settle(proc):
    """Call this after the imports and after the reserve was dropped. `proc`: where /proc is mounted."""
    gc.collect()
    gc.freeze()  # otherwise the first collection in a child copies every page
    gc.disable()
    with open(f"{proc}/self/maps") as table:
        mappings = [line.split() for line in table]
    for bounds, mode, _, _, inode, *path in mappings:
        start, end = (int(bound, 16) for bound in bounds.split("-"))
        if mode.startswith("rw") and path in ([], ["[heap]"]):
            _use_huge_pages(start, end)
        elif mode == "r-xp" and inode != "0":
            _advise(start, end - start, MADV_DONTNEED)  # code that imports ran: a fork maps the code that it runs itself


def _use_huge_pages(start, end):
    """Moves this process's own memory into huge pages if the kernel can (Linux >= 6.1). Has no effect elsewhere."""
    for address in range(-(-start // HUGE_PAGE_BYTES) * HUGE_PAGE_BYTES, end - HUGE_PAGE_BYTES + 1, HUGE_PAGE_BYTES):
        for advice in (MADV_HUGEPAGE, MADV_COLLAPSE):
            _advise(address, HUGE_PAGE_BYTES, advice)


def _advise(address, length, advice):
    libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(length), advice)
