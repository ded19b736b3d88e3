"""How much memory a part of the program takes at its peak."""

import ctypes
import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

# After so many the garbage collector looks among them for what nothing but itself holds.
NEW_OBJECTS = 50_000


@dataclass
class PeakMemory:
    """The peak of resident memory in bytes; None where the system does not tell."""

    peak: int | None = None


def return_memory_soon() -> None:
    """Let the allocator of polars give freed memory back after a second instead of ten.

    It reads this variable when it is loaded, so this comes before. What one step frees
    is then not counted to the peak of the next.
    """
    os.environ.setdefault("_RJEM_MALLOC_CONF", "dirty_decay_ms:1000,muzzy_decay_ms:0")


def collect_garbage_seldom() -> None:
    """Let the garbage collector look at less, and less often.

    It would look through all modules again at each collection: what is loaded so far is taken
    out of its sight. Only a program that is about to do one job may call this, since what is
    garbage already stays. And it would begin after 700 new objects, of which a step makes
    hundreds of thousands that are no garbage before its end.
    """
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS, 10, 10)


def total_memory() -> int | None:
    """How much memory the machine has, in bytes; None where it does not tell (Windows)."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None


def release_memory() -> None:
    """Give what is no longer used back to the system, where the C library can be asked to.

    Without this, what one step has freed stays with the process, and the peaks of the
    steps add up.
    """
    gc.collect()
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):  # a C library other than glibc
            ctypes.CDLL(None).malloc_trim(0)


@contextmanager
def measure_peak_memory() -> Iterator[PeakMemory]:
    """Measure the peak of the enclosed code (Linux), or of the process so far (elsewhere)."""
    try:
        # 5 resets the high-water mark of resident memory, see proc(5).
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        read_peak = _high_water_mark
    except OSError:
        read_peak = _process_peak
    memory = PeakMemory()
    yield memory
    memory.peak = read_peak()


def _high_water_mark() -> int | None:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return None


def _process_peak() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
