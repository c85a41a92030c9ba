"""A folder on whatever file system a cluster reaches (HDFS, S3, ...), through the Hadoop client that Spark brings."""

import uuid
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from queryveil.engines.base import InFiles
from queryveil.engines.spark import Spark, working
from queryveil.files import Folder, RemoteFolder

if TYPE_CHECKING:
    from collections.abc import Iterator


class HadoopFolder(RemoteFolder):
    """A folder that is named by an address, such as `hdfs://host/path`.

    Args:
        engine: The cluster.
        address: The folder.
    """

    def __init__(self, engine: Spark, address: str) -> None:
        self._engine = engine
        self._address = address.rstrip("/")
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

    def parent(self) -> str | None:
        """The folder around it, if that exists."""
        above = self._path().getParent()
        with working(self._address):
            found = above is not None and self._files.exists(above)
        return str(above) if found else None

    def files(self) -> list[str]:
        """The files in it and below, by name."""
        with working(self._address):
            root = self._files.makeQualified(self._path()).toString().rstrip("/") + "/"
            found, names = self._files.listFiles(self._path(), True), []
            while found.hasNext():
                names.append(found.next().getPath().toString().removeprefix(root))
        return sorted(names)

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
        """The SHA-256 of every file, in hexadecimal, told by the workers."""
        names = self.files()
        if not names:
            return {}
        with working(self._address):
            frame = self._engine.session.read.format("binaryFile").load([self.uri(name) for name in names])
            found = frame.selectExpr("path", "sha2(content, 256) AS digest").toArrow().to_pylist()
        # The longest name that fits: a table in parts may have a part that is called as another file is.
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
        private = self._java.permission.FsPermission("700")
        with working(self._address):
            self._files.mkdirs(made._path(), private)
        return made

    def take(self, stage: Folder) -> None:
        """Become what is staged, in place of what was here."""
        assert isinstance(stage, HadoopFolder)  # noqa: S101
        with working(self._address):
            self._files.setPermission(stage._path(), self._java.permission.FsPermission("755"))
            old = HadoopFolder(self._engine, f"{stage}-old") if self.exists() else None
            # Renaming onto a folder that is still there would put the one inside the other.
            moved = old is None or (self._files.rename(self._path(), old._path()) and not self.exists())
            moved = moved and self._files.rename(stage._path(), self._path())
            if old is not None and old.exists():
                if moved:
                    old.remove()
                else:
                    self._files.rename(old._path(), self._path())
        if not moved:
            raise OSError(None, f"the file system refuses to rename folders (look for {stage}-old)")

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
