"""Private folders for work in progress, leftovers of killed runs, and renames that never replace anything.

Only its owner can read a scratch folder, which protects whatever another library writes into it. A lock on a file in it
marks it as in use; the lock ends with the process. A folder with the file but without the lock is a leftover.
"""

import ctypes
import errno
import fcntl
import json
import os
import shutil
import stat
import tempfile
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from queryveil.errors import QueryveilWarning

LOCK = ".queryveil-lock"
STAGED, OLD = "made", "old"
"""What will be renamed to the target, and what was moved away from there."""
_PREFIXES = (".queryveil-", "queryveil-")
_AT_FDCWD, _NOREPLACE, _EXCHANGE = -100, 1, 2
_UNAVAILABLE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EPERM)


class Scratch:
    """A private folder that a lock marks as in use, until it is removed or the process ends.

    Leftovers of killed runs in the same place are removed first.

    Args:
        around: The folder to make it in; by default the folder for temporary files.
    """

    def __init__(self, around: Path | None = None) -> None:
        clear_leftovers(around or Path(tempfile.gettempdir()))
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIXES[around is None], dir=around))
        # The file is locked before it gets its name, so that no other run sees it without the lock.
        new = self.path / f"{LOCK}-new"
        try:
            self._handle = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with suppress(OSError):  # without locks no other run gets one either, so it leaves this folder alone
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            new.rename(self.path / LOCK)
        except BaseException:
            shutil.rmtree(self.path, ignore_errors=True)
            raise

    def __enter__(self) -> Path:
        return self.path

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.remove()

    def note(self, target: Path, replaced: Sequence[int]) -> None:
        """Record which folder (its device and number) is about to be replaced, to restore it after a kill."""
        known = [_identity(os.lstat(self.path / STAGED)), list(replaced)]
        os.pwrite(self._handle, json.dumps({"target": target.name, "known": known}).encode(), 0)
        os.fsync(self._handle)

    def remove(self) -> None:
        """Remove it and all in it."""
        if self._handle < 0:
            return
        with suppress(OSError):
            folder = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                _remove(self.path, folder, self._handle)
            finally:
                os.close(folder)
        os.close(self._handle)
        self._handle = -1


def clear_leftovers(around: Path) -> None:
    """Remove the scratch folders that killed runs of this user left in a folder."""
    with suppress(OSError), os.scandir(around) as entries:
        for entry in [entry for entry in entries if entry.name.startswith(_PREFIXES)]:
            with suppress(OSError, ValueError, LookupError, TypeError):  # whatever was done to it
                _clear(around / entry.name)


def _clear(path: Path) -> None:
    """Remove a scratch folder if it belongs to this user and is not in use."""
    folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        about = os.fstat(folder)
        if about.st_uid != os.geteuid() or about.st_mode & 0o077:
            return
        handle = os.open(LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            if stat.S_ISREG(os.fstat(handle).st_mode):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(path, folder, handle)
        finally:
            os.close(handle)
    finally:
        os.close(folder)


def _remove(path: Path, folder: int, handle: int) -> None:
    """Remove a scratch folder whose lock is held, but nothing that was taken from the target by mistake.

    Args:
        path: The folder.
        folder: The same, opened, so that renaming things around it cannot redirect the removal.
        handle: The file with the lock.
    """
    names = os.listdir(folder)
    note = json.loads(os.pread(handle, 1 << 16, 0) or b"{}")
    if note:
        target = path.parent / note["target"]
        if STAGED in names and OLD in names:  # stopped between the two renames of an exchange that is none
            try:
                (path / OLD).rename(target)  # onto nothing, or onto the empty folder of `move_new`; never onto more
            except OSError:
                _keep(path, target)
                return
            warnings.warn(
                f"{target} was restored, because the run that was replacing it was stopped.",
                QueryveilWarning,
                stacklevel=2,
            )
        elif STAGED in names and _identity(os.stat(STAGED, dir_fd=folder, follow_symlinks=False)) not in note["known"]:
            _keep(path, target)
            return
    for name in os.listdir(folder):
        if name != LOCK:
            if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)
    os.unlink(LOCK, dir_fd=folder)  # last, because without it nobody would go on with this
    path.rmdir()


def _keep(path: Path, target: Path) -> None:
    warnings.warn(
        f"{path} holds what was at {target} while it was being replaced; look at it, and move it away.",
        QueryveilWarning,
        stacklevel=2,
    )


def _identity(about: os.stat_result) -> list[int]:
    return [about.st_dev, about.st_ino]


def move_new(source: Path, target: Path) -> None:
    """Rename a file or folder to a name that does not exist yet.

    Raises:
        FileExistsError: If the name exists; what has it stays as it is.
    """
    if _renameat2(source, target, _NOREPLACE):
        return
    if not source.is_dir():
        os.link(source, target, follow_symlinks=False)
        source.unlink()
        return
    target.mkdir(0o700)  # takes the name, or fails if it is taken
    try:
        source.rename(target)  # a folder replaces an empty one, and nothing else
    except OSError as error:
        with suppress(OSError):
            target.rmdir()
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from None
        raise


def exchange(one: Path, other: Path) -> bool:
    """Exchange the names of two folders in one step; False if the system cannot."""
    return _renameat2(one, other, _EXCHANGE)


def _renameat2(source: Path, target: Path, flags: int) -> bool:
    """Rename with flags; False if the C library, the kernel or the file system does not support them."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    call.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    if call(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) == 0:
        return True
    number = ctypes.get_errno()
    if number in _UNAVAILABLE:
        return False
    raise OSError(number, os.strerror(number), str(target))


def share(path: Path) -> None:
    """Give a private file or folder the permissions that a new one would have."""
    mask = os.umask(0)
    os.umask(mask)
    path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def sync_folder(path: Path) -> None:
    """Wait until the names in a folder are on the disk, if the file system can."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except PermissionError:  # it may be written to, but not read
        return
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)
