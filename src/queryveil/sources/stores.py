"""Object stores (S3, Google Cloud Storage, Azure), by the package obstore.

Credentials are what the package finds: the environment (`AWS_...`, `GOOGLE_...`, `AZURE_...`), or the machine's own
role. Its messages quote addresses and answers, so none is passed on.
"""

import os
import re
import secrets
import weakref
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from fnmatch import fnmatchcase
from functools import partial
from io import BufferedReader
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from queryveil.errors import QueryveilError, require
from queryveil.files.folders import Folder, LocalFolder, Staged, State, shown
from queryveil.files.scratch import Scratch
from queryveil.sources import UNFINISHED, Parts, RemoteFile
from queryveil.sources.web import is_this_machine

if TYPE_CHECKING:
    from obstore.store import ObjectStore

MANIFEST = "manifest.json"
"""What makes a folder a release."""
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)?")
_CHUNK = 8 << 20
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL", "GOOGLE_ENDPOINT"),
    "az": ("AZURE_ENDPOINT", "AZURE_STORAGE_ENDPOINT"),
}
"""The variables that name another server than the provider's."""
_ALLOW_HTTP = {"s3": "AWS_ALLOW_HTTP", "gs": "GOOGLE_ALLOW_HTTP", "az": "AZURE_ALLOW_HTTP"}


class _Place(NamedTuple):
    """A place in a store: the store, its address, the name of an object or the beginning of names, how it is shown."""

    store: "ObjectStore"
    root: str
    key: str
    shown: str

    def at(self, key: str) -> str:
        """The address of an object of the same store."""
        return f"{self.root}/{key}"


def _placed(address: str) -> _Place:
    scheme, _, rest = address.partition("://")
    bucket, _, key = rest.partition("/")
    named = shown(address)
    if not bucket or re.search("[@:]", bucket):
        raise QueryveilError(
            f"{named} must be written as {scheme}://BUCKET/NAME; credentials come from the environment."
        )
    require(f"Reading {scheme}:// addresses", "obstore")
    from obstore.store import from_url

    scheme = scheme.lower()
    here = is_this_machine(urlsplit(endpoint_of(scheme)).hostname or "")
    plain = here or os.environ.get(_ALLOW_HTTP[scheme], "").lower() in ("1", "true")
    root = f"{scheme}://{bucket}"
    with _working(named):
        store = from_url(
            root,
            client_options={"allow_http": plain, "timeout": "300s", "read_timeout": "30s"},
            retry_config={"max_retries": 4, "retry_timeout": timedelta(seconds=60)},
        )
    return _Place(store, root, re.sub("/+", "/", key).strip("/"), named.rstrip("/"))


def endpoint_of(scheme: str) -> str:
    """The server that the environment names for a kind of store; empty for the provider's own."""
    return next((os.environ[name] for name in _ENDPOINTS[scheme] if os.environ.get(name)), "")


@contextmanager
def _working(what: str) -> Iterator[None]:
    """Say what a store complains about in one sentence, without its own words."""
    try:
        yield
    except FileNotFoundError:
        raise QueryveilError(f"There is nothing at {what}; check the address.") from None
    except (QueryveilError, KeyboardInterrupt):
        raise
    except Exception as error:
        kind, text = type(error).__name__, str(error)
        if " 404 " in text:
            raise QueryveilError(f"There is nothing at {what}; check the address.") from None
        if kind in ("PermissionDeniedError", "UnauthenticatedError") or " 403 " in text or " 401 " in text:
            why = "refuses access; check the credentials in the environment, and what they allow"
        elif "169.254." in text or "metadata" in text.lower() or "redential" in text or "private_key" in text:
            why = "was not asked, because there are no credentials; set them in the environment"
        elif kind == "UnknownConfigurationKeyError" or "onfig" in text or "ccount must be" in text:
            why = "is not fully described; set the account, region or endpoint in the environment"
        elif "builder error" in text:
            why = "would be reached without encryption; use https for its endpoint"
        else:
            why = "does not answer, or stopped in the middle; try again later"
        raise QueryveilError(f"The store of {what} {why}.") from None


def find(address: str) -> list[RemoteFile]:
    """The objects that an address means: one, those in a folder, or those whose names fit a pattern."""
    place = _placed(address)
    found = _listed(place)
    if not found:
        raise QueryveilError(f"There is no file at {place.shown}; check the address, or quote a pattern.")
    return [StoreFile(place.store, key, place.at(key)) for key in found]


def _listed(place: _Place) -> list[str]:
    import obstore

    with _working(place.shown):
        if re.search(r"[*?[]", place.key):
            above = re.split(r"[*?[]", place.key, maxsplit=1)[0].rpartition("/")[0]
            wanted = place.key.split("/")
            names = [one["path"] for some in obstore.list(place.store, above or None) for one in some]
            fits = (name for name in names if _fits(name.split("/"), wanted))
            return sorted(fits)
        if place.key and _is_object(place):
            return [place.key]
        below = f"{place.key}/" if place.key else ""
        found = [one["path"].removeprefix(below) for some in obstore.list(place.store, below or None) for one in some]
    return sorted(f"{below}{name}" for name in found if name and all(map(_is_partition, name.split("/")[:-1])))


def _is_partition(folder: str) -> bool:
    """Whether a folder is a part of the one around it, such as `day=2026-01-01`."""
    return re.fullmatch(r"[^._=][^=]*=.*", folder) is not None


def marks(address: str) -> list[str]:
    """Names below an address, without it, in the folders that tables of a data lake have."""
    import obstore

    place = _placed(address)
    found: list[str] = []
    with _working(place.shown):
        for name in ("_delta_log", "metadata"):
            above = f"{place.key}/{name}/".removeprefix("/")
            found += [one["path"] for one in obstore.list_with_delimiter(place.store, above)["objects"]]
    return [name.removeprefix(f"{place.key}/") for name in found]


def _fits(name: list[str], wanted: list[str]) -> bool:
    return len(name) == len(wanted) and all(map(fnmatchcase, name, wanted))


def _is_object(place: _Place) -> bool:
    import obstore

    try:
        obstore.head(place.store, place.key)
    except FileNotFoundError:
        return False
    return True


class StoreFile(RemoteFile):
    """An object of a store."""

    def __init__(self, store: "ObjectStore", key: str, address: str) -> None:
        super().__init__(address)
        self._store, self._key = store, key

    def open(self) -> BufferedReader:
        """Its bytes from the beginning."""
        return BufferedReader(_StoreParts(self._store, self._key, str(self)))


class _StoreParts(Parts):
    """An object, read part by part."""

    def __init__(self, store: "ObjectStore", key: str, address: str) -> None:
        import obstore

        super().__init__()
        self._store, self._key, self._address = store, key, address
        with _working(address):
            self._known: Any = obstore.head(store, key)

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return int(self._known["size"])

    def fetch(self, start: int, end: int) -> memoryview:
        """Some of its bytes."""
        import obstore

        with _working(self._address):
            answer = obstore.get(self._store, self._key, options={"range": (start, end)})
            if (answer.meta["size"], answer.meta["e_tag"]) != (self._known["size"], self._known["e_tag"]):
                raise QueryveilError(f"{self._address} was changed while it was read; read it again.")
            return memoryview(answer.bytes())


class StoreFolder(Folder):
    """A release in an object store: put there whole, the manifest last; read by a private copy on this machine.

    Args:
        address: Such as `s3://bucket/release`.
    """

    def __init__(self, address: str) -> None:
        self._place = _placed(address)
        if not self._place.key or re.search(r"[*?[]", self._place.key):
            raise QueryveilError(f"{self} is not a folder; write it as s3://BUCKET/NAME.")

    def __str__(self) -> str:
        return self._place.shown

    def uri(self, name: str) -> str:
        """The address of a file in it."""
        return f"{self}/{name}"

    def _key(self, name: str) -> str:
        return f"{self._place.key}/{name}"

    def _objects(self) -> dict[str, Any]:
        import obstore

        with _working(str(self)):
            found = [one for some in obstore.list(self._place.store, f"{self._place.key}/") for one in some]
            # A folder marker has the name of the folder; an object of that name is in the way of a release.
            if not found and _is_object(self._place):
                raise QueryveilError(f"{self} is a file; name a folder.")
        return {one["path"].removeprefix(self._key("")): one for one in found}

    def state(self) -> State | None:
        """What is at its place: the objects in it by name, size and version."""
        found = self._objects()
        return tuple((name, one["size"], one["e_tag"]) for name, one in sorted(found.items())) or None

    def parent(self) -> str | None:
        """The folder around it, which need not be made in a store."""
        return str(self).rpartition("/")[0]

    def files(self) -> list[str]:
        """The files in it and below, by name."""
        return sorted(self._objects())

    def odd(self) -> str | None:
        """Nothing: a store has only files."""
        return None

    def copy(self) -> LocalFolder:
        """A private copy of it on this machine, which is removed with the last use of what this returns."""
        names = self.files()
        if MANIFEST not in names:
            raise QueryveilError(
                f"There is no release in {self}: it has no {MANIFEST}; give the address that 'queryveil anonymize -o'"
                " wrote."
            )
        if not all(map(_PLAIN.fullmatch, names)):
            raise QueryveilError(f"The release {self} holds a file that no release has; do not use it.")
        made = _Copy(str(self))
        for name in names:
            target = made.path / name
            target.parent.mkdir(0o700, exist_ok=True)
            source = StoreFile(self._place.store, self._key(name), self.uri(name)).open()
            with source, open(target, "wb", opener=partial(os.open, mode=0o600)) as file:
                while data := source.read(_CHUNK):
                    file.write(data)
        return made

    def read(self, name: str) -> bytes:
        """The content of a small file."""
        with StoreFile(self._place.store, self._key(name), self.uri(name)).open() as file:
            return file.read()

    def sha256(self) -> dict[str, str]:
        """The SHA-256 of every file, in hexadecimal."""
        return self.copy().sha256()

    def write(self, name: str, content: bytes) -> None:
        """Write a small file."""
        import obstore

        with _working(str(self)):
            obstore.put(self._place.store, self._key(name), content)

    def rename(self, name: str, new: str) -> None:
        """Give a file another name."""
        import obstore

        with _working(str(self)):
            obstore.rename(self._place.store, self._key(name), self._key(new))

    def delete(self, name: str) -> None:
        """Remove a file."""
        import obstore

        with _working(str(self)):
            obstore.delete(self._place.store, self._key(name))

    def stage(self) -> LocalFolder:
        """A new folder on this machine that only its owner may read."""
        return Staged(Scratch())

    def take(self, stage: Folder, replaces: State | None) -> None:
        """Become what is staged.

        Every file is sent before the store shows one of them: until then an earlier release is as it was. What follows
        are a few small requests; the manifest comes last, so an upload that stops among them is not a release.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError

        assert isinstance(stage, LocalFolder)  # noqa: S101
        store, names = self._place.store, [name for name in stage.files() if name != MANIFEST]
        changed = QueryveilError(
            f"{self} was changed by somebody else in the meantime and is left unchanged; look at it first."
        )
        mark, begun = secrets.token_bytes(16), False
        with _working(str(self)):
            try:
                with (
                    ExitStack() as uploads
                ):  # an error ends every upload without a trace, the end of the block shows them
                    for name in names:
                        upload = obstore.open_writer(store, self._key(name), buffer_size=_CHUNK, max_concurrency=4)
                        uploads.enter_context(upload)
                        with (stage.path / name).open("rb") as file:
                            while data := file.read(_CHUNK):
                                upload.write(data)
                    self._begin(replaces, changed, mark)
                    begun = True
                here = {name: (stage.path / name).stat().st_size for name in names}
                there = {name: one["size"] for name, one in self._objects().items() if name != UNFINISHED}
                if here != there:
                    raise changed
                try:
                    obstore.put(store, self._key(MANIFEST), stage.read(MANIFEST), mode="create")
                except AlreadyExistsError:
                    raise changed from None
            except BaseException:
                if begun:
                    with suppress(Exception):  # if the store is gone, there is no manifest, and so no release
                        self._withdraw(names, mark)
                raise
            self.delete(UNFINISHED)

    def _withdraw(self, names: list[str], mark: bytes) -> None:
        """Remove what this run uploaded, unless somebody else has put a release there since; nothing of others."""
        if self.read(UNFINISHED) != mark:
            return
        there = self.files()
        for name in names:
            if name in there and MANIFEST not in there:
                self.delete(name)
        self.delete(UNFINISHED)

    def _begin(self, replaces: State | None, changed: QueryveilError, mark: bytes) -> None:
        """Mark the place as unfinished by this run, and remove what may be replaced."""
        import obstore
        from obstore.exceptions import AlreadyExistsError

        old = [name for name, *_ in replaces or ()]
        if self.state() != replaces:
            raise changed
        if UNFINISHED in old:
            self.delete(UNFINISHED)
        try:  # of two that come this far at once, the store lets one go on
            obstore.put(self._place.store, self._key(UNFINISHED), mark, mode="create")
        except AlreadyExistsError:
            raise changed from None
        for name in sorted(set(old) - {UNFINISHED}, key=lambda name: name != MANIFEST):
            self.delete(name)

    def remove(self) -> None:
        """Remove it and all in it, the manifest first."""
        for name in sorted(self.files(), key=lambda name: name != MANIFEST):
            self.delete(name)


class _Copy(LocalFolder):
    """A private copy of a folder, under the name of what it is a copy of."""

    def __init__(self, address: str) -> None:
        scratch = Scratch()
        weakref.finalize(self, scratch.remove)
        super().__init__(scratch.path / "copy")
        self.path.mkdir(0o700)
        self._address = address

    def __str__(self) -> str:
        return self._address
