"""How much memory is left, for code that needs much of it.

Tables spill to disk when they do not fit. Arrays cannot, and the system kills a process that uses more memory than
there is. So code that makes a large array first says how large it will be.
"""

import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from queryveil.errors import QueryveilError, option

LEAST = 500_000_000
"""What Python, the compiled loops and a block of rows for each thread need for any log."""

_TABLES = 4_000_000_000
_UNITS = {"": 1, "k": 1000, "m": 1000**2, "g": 1000**3, "t": 1000**4}
_SIZE = re.compile(r"(\d{1,9}(?:\.\d{1,9})?) ?(?:([kmgt]?)(i?)b?)", re.IGNORECASE)

_limit: int | None = None


def limit_to(size: str | None) -> None:
    """Set the memory limit of this process, such as `4GB`; None leaves it unchanged."""
    global _limit
    if size is not None:
        _limit = parsed(size)


def parsed(size: str) -> int:
    """A size such as `4GB` in bytes.

    Raises:
        QueryveilError: If it is not a size, or too small for any log.
    """
    found = _SIZE.fullmatch(size.strip())
    number = 0
    if found is not None:
        unit = _UNITS[found[2].lower()]
        if found[3]:
            unit = 1024 ** (len(str(unit)) // 3)
        number = int(float(found[1]) * unit)
    if number < LEAST:
        raise QueryveilError(f"The memory limit must be a size of at least {shown(LEAST)}, such as 4GB. Got '{size}'.")
    return number


def for_tables() -> int:
    """The memory of tables before they spill: 4 GB, or half of the limit if there is one."""
    return _TABLES if _limit is None else _limit // 2


def described(size: int) -> str:
    """A share of memory in words, with the limit that it comes from."""
    return shown(size) + ("" if _limit is None else f" (half of the memory limit of {shown(_limit)})")


def reserve(size: int, what: str) -> None:
    """Refuse arrays that do not fit, before they are made.

    Args:
        size: How many bytes they take.
        what: What they are, as the beginning of a sentence.

    Raises:
        QueryveilError: If less is left of the limit or, without a limit, of the machine's memory.
    """
    left = _available() if _limit is None else max(_limit - _held(), 0)
    if left is None or size <= left:
        return
    if _limit is None:
        why, what_to_do = f"this machine has {shown(left)} left", "use one with more memory"
    else:
        why, what_to_do = (
            f"{shown(left)} is left of the memory limit of {shown(_limit)}",
            f"raise {option('memory_limit')}",
        )
    raise QueryveilError(
        f"{what} would take {shown(size)} of memory, and {why}; {what_to_do}, use a part of the log, or use Spark."
    )


def shown(size: int) -> str:
    """A number of bytes in words."""
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def _held() -> int:
    """The memory that this process uses, without mapped files; 0 if the system does not say."""
    status = Path("/proc/self/status")
    return sum(_kilobytes(status, name) or 0 for name in ("RssAnon:", "RssShmem:"))


def _available() -> int | None:
    """The memory that the machine, or the container, has left; None if the system does not say."""
    found = [
        size for size in (_kilobytes(Path("/proc/meminfo"), "MemAvailable:"), *_left_to_group()) if size is not None
    ]
    return min(found, default=None)


def _kilobytes(file: Path, name: str) -> int | None:
    try:
        lines = file.read_text("utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(name)), None)


def _left_to_group(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Iterator[int]:
    """What the control groups of this process leave to it; pages that only cache files count as free."""
    try:
        lines = own.read_text("utf-8").splitlines()
    except OSError:
        return
    for line in lines:
        _, kinds, path = line.split(":", 2)
        if kinds == "":
            top, limit, current, cached = root, "memory.max", "memory.current", "inactive_file"
        elif "memory" in kinds.split(","):
            top, limit, current = root / "memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
            cached = "total_inactive_file"
        else:
            continue
        inside = PurePosixPath(path.lstrip("/"))
        for group in (top / inside, *(top / above for above in inside.parents)):
            try:
                most, now = (group / limit).read_text().strip(), int((group / current).read_text())
                stat = dict(row.split(" ", 1) for row in (group / "memory.stat").read_text().splitlines())
            except OSError:
                continue  # the root has no limit
            if most != "max":
                yield max(int(most) - now + int(stat.get(cached, 0)), 0)
