"""A folder on any file system that a cluster reaches (HDFS, S3, ...), through Spark's Hadoop client.

Such file systems rename without replacing, HDFS in one step, object stores file by file. None can exchange two folders:
while a release is replaced, there is an instant when neither the old nor the new one is in its place. They also have no
locks that end with a process, so leftovers of a killed run (`.queryveil-*`) look like work in progress and stay.
"""

import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queryveil.engines.base import InFiles
from queryveil.engines.spark import Spark
from queryveil.engines.spark_errors import sentence_of, working
from queryveil.errors import QueryveilError
from queryveil.files.folders import Folder, RemoteFolder, State

if TYPE_CHECKING:
    from collections.abc import Iterator


class HadoopFolder(RemoteFolder):
    """A folder with an address, such as `hdfs://host/path`.

    Args:
        engine: The cluster.
        address: The folder.
    """

    def __init__(self, engine: Spark, address: str) -> None:
        self._engine = engine
        self._address = address.rstrip("/")
        if engine.connect:
            raise QueryveilError(
                f"Spark Connect gives no access to the file system of {address}; name a folder that this machine and"
                " all workers reach, or use a classic session."
            )
        with working(address):
            context: Any = engine.session.sparkContext
            self._apache: Any = context._jvm.org.apache
            self._java: Any = self._apache.hadoop.fs
            self._files: Any = self._java.Path(self._address).getFileSystem(context._jsc.hadoopConfiguration())

    def __str__(self) -> str:
        return self._address

    def uri(self, name: str) -> str:
        """The address of a file in it."""
        return f"{self._address}/{name}"

    def _path(self, name: str = "") -> Any:
        return self._java.Path(self.uri(name) if name else self._address)

    def exists(self) -> bool:
        """Whether there is anything at its place."""
        with working(self._address):
            return bool(self._files.exists(self._path()))

    def state(self) -> State | None:
        """What is at its place: the files in it by name, size and time."""
        if not self.exists():
            return None
        with working(self._address):
            return tuple((name, about.getLen(), about.getModificationTime()) for name, about in self._listed())

    def parent(self) -> str | None:
        """The folder around it, if that exists."""
        above = self._path().getParent()
        with working(self._address):
            found = above is not None and self._files.exists(above)
        return str(above) if found else None

    def files(self) -> list[str]:
        """The files in it and below, by name."""
        with working(self._address):
            return [name for name, _ in self._listed()]

    def _listed(self) -> list[tuple[str, Any]]:
        root = self._files.makeQualified(self._path()).toString().rstrip("/") + "/"
        found, files = self._files.listFiles(self._path(), True), {}
        while found.hasNext():
            about = found.next()
            files[about.getPath().toString().removeprefix(root)] = about
        return sorted(files.items())

    def odd(self) -> str | None:
        """Something in it that no release has: a link, or a folder without files."""
        names = self.files()
        with working(self._address):
            for found in self._files.listStatus(self._path()):
                name = found.getPath().getName()
                empty = found.isDirectory() and not any(file.startswith(f"{name}/") for file in names)
                if found.isSymlink() or empty:
                    return str(name)
        return None

    def read(self, name: str) -> bytes:
        """The content of a small file."""
        with working(self._address):
            there = self._files.exists(self._path(name))
        if not there:
            raise FileNotFoundError(name)
        with working(self._address), closing(self._files.open(self._path(name))) as stream:
            return bytes(self._apache.commons.io.IOUtils.toByteArray(stream))

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        with working(self._address), closing(self._files.create(self._path(name), False)) as stream:
            stream.write(bytearray(content))

    def sha256(self) -> dict[str, str]:
        """The SHA-256 of every file, in hexadecimal, computed by the workers."""
        names = self.files()
        if not names:
            return {}
        with working(self._address):
            frame = self._engine.session.read.format("binaryFile").load([self.uri(name) for name in names])
            found = frame.selectExpr("path", "sha2(content, 256) AS digest").toArrow().to_pylist()
        # The longest name that fits: a part of a table may have the same name as another file.
        ends = {
            max((name for name in names if row["path"].endswith(f"/{name}")), key=len): row["digest"] for row in found
        }
        return {name: ends[name] for name in names}

    def rename(self, name: str, new: str) -> None:
        """Give a file another name."""
        with working(self._address):
            self._files.rename(self._path(name), self._path(new))

    def delete(self, name: str) -> None:
        """Remove a file."""
        with working(self._address):
            self._files.delete(self._path(name), False)

    def stage(self) -> "HadoopFolder":
        """A new folder beside it that only its owner may read."""
        above = self._address.rpartition("/")[0]
        made = HadoopFolder(self._engine, f"{above}/.queryveil-{uuid.uuid4().hex[:12]}")
        made.make()
        return made

    def make(self) -> None:
        """Make it, so that only its owner may read it."""
        with working(self._address):
            self._files.mkdirs(self._path(), self._java.permission.FsPermission("700"))

    def is_private(self) -> bool:
        """Whether it is a folder of this user that nobody else may read or change."""
        with working(self._address):
            about = self._files.getFileStatus(self._path())
            user = self._apache.hadoop.security.UserGroupInformation.getCurrentUser().getShortUserName()
            return bool(about.getOwner() == user and about.getPermission().toShort() & 0o077 == 0)

    def names(self) -> list[str]:
        """What is in it, files and folders, by name."""
        with working(self._address):
            return sorted(str(found.getPath().getName()) for found in self._files.listStatus(self._path()))

    def remove_inside(self, name: str) -> None:
        """Remove a file or folder in it, with all in that."""
        with working(self._address):
            self._files.delete(self._path(name), True)

    def take(self, stage: Folder, replaces: State | None) -> None:
        """Become what is staged; while something is replaced, there is nothing here for an instant."""
        assert isinstance(stage, HadoopFolder)  # noqa: S101
        with working(self._address):
            self._files.setPermission(stage._path(), self._java.permission.FsPermission("755"))
        if self.state() != replaces:
            raise self._changed()
        if replaces is None:
            if not self._moved(stage, self):
                raise self._changed()
            return
        old = HadoopFolder(self._engine, f"{stage}-old")
        # What comes here between the look and the rename is moved away as well, seen then, and put back.
        try:
            done = self._moved(self, old) and old.state() == replaces and self._moved(stage, self)
            back = done or old.state() is None or self._moved(old, self)
        except QueryveilError:
            done = back = False
        if not back:
            raise QueryveilError(
                f"{self} could not be replaced; what was there before is in {old}, if not in its place."
            )
        if not done:
            raise self._changed()
        old.remove()

    def _changed(self) -> QueryveilError:
        return QueryveilError(
            f"{self} was changed by somebody else in the meantime and is left unchanged; look at it first."
        )

    def _moved(self, source: "HadoopFolder", target: "HadoopFolder") -> bool:
        """Rename a folder to a name that nothing has; False if there is something."""
        context: Any = self._engine.session.sparkContext
        settings, plain = context._jsc.hadoopConfiguration(), context._gateway.new_array(self._java.Options.Rename, 0)
        try:
            files = self._java.FileContext.getFileContext(self._path().toUri(), settings)
            files.rename(source._path(), target._path(), plain)
        except Exception as error:
            if "FileAlreadyExistsException" in str(error):
                return False
            if "UnsupportedFileSystemException" in str(error):
                return self._moved_after_a_look(source, target)
            raise QueryveilError(sentence_of(error, self._address)) from None
        return True

    def _moved_after_a_look(self, source: "HadoopFolder", target: "HadoopFolder") -> bool:
        """The same with the older call, which moves a folder into an existing one."""
        inside = target._path(str(source).rpartition("/")[2])
        with working(self._address):
            if self._files.exists(target._path()):
                return False
            done = self._files.rename(source._path(), target._path())
            if done and self._files.exists(inside):
                self._files.rename(inside, source._path())
                return False
        if not done:
            raise QueryveilError(f"The file system of {self} refuses to rename folders; name another place.")
        return True

    def remove(self) -> None:
        """Remove it and all in it."""
        with working(self._address):
            self._files.delete(self._path(), True)

    def open_table(self, name: str) -> tuple[pa.Schema, InFiles]:
        """The columns of a Parquet table in it, and a way to read its batches."""
        files = tuple(self.uri(file) for file in self.files() if file == name or file.startswith(f"{name}/part-"))
        if not files or not name.endswith(".parquet"):
            raise ValueError(name)
        with working(self._address):
            frame = self._engine.session.read.parquet(*files)
            schema = frame.limit(0).toArrow().schema
        schema = pa.schema([(field.name, field.type) for field in schema])

        def batches() -> "Iterator[pa.RecordBatch]":
            for file in files:
                with working(self._address):
                    found = self._engine.session.read.parquet(file).toArrow()
                yield from found.cast(schema).to_batches()

        return schema, InFiles(files, batches, None)
