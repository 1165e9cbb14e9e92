"""A store in an object store, through obstore: S3, Google's and Azure's, with puts on condition."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any

from rse_cli.adapters.lease import ChangedObjectError, Lease, Stored
from rse_cli.adapters.store_folder import MANIFEST_NAME, SEAL_NAME, TABLE_FOLDER
from rse_cli.errors import StoreError
from rse_cli.ports import Bucket

if TYPE_CHECKING:
    from obstore.store import ObjectStore

RETRIES = {"max_retries": 5, "retry_timeout": timedelta(seconds=15)}
"""Within the time of a lease. By default a wrong address is tried for three minutes."""

VERSIONS = f"{TABLE_FOLDER}/_versions/"


@cache
def open_bucket(bucket: Bucket) -> BucketFiles:
    """Return the files of a store, the same for all of a process: one lease is held at a time.

    Raises
    ------
    StoreError
        If obstore isn't there, or takes the address or an option for wrong.
    """
    try:
        from obstore.store import from_url
    except ImportError as error:
        raise StoreError(f"{bucket} needs the extra `remote`: run `pip install 'rse-cli[remote]'`") from error
    with explain_bucket(bucket):
        return BucketFiles(
            bucket, BucketObjects(bucket, from_url(bucket.address, retry_config=RETRIES, **_split_options(bucket)))
        )


def _split_options(bucket: Bucket) -> dict[str, Any]:
    """Return the options as obstore takes them, which has those of the connection apart."""
    config = dict(bucket.options)
    allow_http = config.pop("aws_allow_http", None)
    return {"config": config or None, "client_options": allow_http and {"allow_http": allow_http}}


class BucketObjects:
    """The objects below an address; see `rse_cli.adapters.lease.Objects`."""

    def __init__(self, bucket: Bucket, store: ObjectStore) -> None:
        self._bucket = bucket
        self._store = store

    def get(self, name: str) -> Stored | None:
        """See `Objects`."""
        import obstore

        with explain_bucket(self._bucket):
            try:
                found = obstore.get(self._store, name)
                age = time.time() - found.meta["last_modified"].timestamp()
                return Stored(bytes(found.bytes()), _make_tag(found.meta), age)
            except FileNotFoundError:
                return None

    def put(self, name: str, content: bytes, replaced: Any) -> Any:
        """See `Objects`."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with explain_bucket(self._bucket):
            try:
                return _make_tag(obstore.put(self._store, name, content, mode=dict(replaced) if replaced else "create"))
            except (AlreadyExistsError, PreconditionError) as error:
                raise ChangedObjectError from error
            except FileNotFoundError as error:
                # What is to be replaced is gone, or there is no such bucket.
                if replaced:
                    raise ChangedObjectError from error
                raise StoreError(
                    f"can't write the store {self._bucket}: there is no such bucket: make it first"
                ) from error

    def digest(self, name: str) -> str:
        """Return the SHA-256 of an object, which need not fit into memory.

        Raises
        ------
        FileNotFoundError
            If there is none.
        """
        import obstore

        with explain_bucket(self._bucket):
            total = hashlib.sha256()
            for part in obstore.get(self._store, name):
                total.update(part)
            return total.hexdigest()

    def list(self, prefix: str) -> dict[str, int]:
        """Return the names below a prefix with their sizes, sorted."""
        import obstore

        with explain_bucket(self._bucket):
            batches = obstore.list(self._store, prefix)
            return dict(sorted((one["path"], one["size"]) for batch in batches for one in batch))

    def delete(self, names: list[str]) -> None:
        """Delete objects; those that are gone are fine."""
        import obstore

        with explain_bucket(self._bucket), suppress(FileNotFoundError):
            obstore.delete(self._store, names)


class BucketFiles:
    """A store in an object store, whose lock is a lease; see `rse_cli.adapters.store_files.StoreFiles`.

    A file is replaced as it was last read by this process, so that a writer whose lease was lost changes nothing.
    """

    def __init__(self, bucket: Bucket, objects: BucketObjects) -> None:
        self._bucket = bucket
        self._objects = objects
        self._tags: dict[str, Any] = {}
        self._lease: Lease | None = None

    def read(self, name: str) -> bytes:
        """See `StoreFiles`."""
        stored = self._objects.get(name)
        self._tags[name] = stored and stored.tag
        if stored is None:
            raise FileNotFoundError(name)
        return stored.content

    def replace(self, name: str, content: bytes) -> None:
        """See `StoreFiles`."""
        if name not in self._tags:
            self.holds(name)
        self.confirm_lock()
        try:
            self._tags[name] = self._objects.put(name, content, self._tags[name])
        except ChangedObjectError as error:
            raise StoreError(
                f"another process changed {name} of the store {self._bucket}: run the command again"
            ) from error

    def holds(self, name: str) -> bool:
        """See `StoreFiles`."""
        try:
            self.read(name)
        except FileNotFoundError:
            return False
        return True

    @contextmanager
    def lock(self, timeout: float, announce: Callable[[str], None]) -> Iterator[None]:
        """See `StoreFiles`."""
        lease = Lease(self._objects, str(self._bucket))
        with lease.hold(timeout, announce) as was_left:
            self._lease = lease
            try:
                if was_left:
                    fence_table(self._bucket)
                yield
            finally:
                self._lease = None

    def confirm_lock(self) -> None:
        """See `StoreFiles`."""
        if self._lease is not None:
            self._lease.confirm()

    def prepare(self) -> None:
        """Nothing need be made; what else lies there is not looked at."""

    def discard_table(self) -> None:
        """Drop the table: its versions first and the newest last, so that no version ever lacks a file."""
        self.confirm_lock()
        self._tags.pop(SEAL_NAME, None)
        names = list(self._objects.list(f"{TABLE_FOLDER}/"))
        # Lance counts versions down in the names of their files, so the newest comes first.
        versions = sorted((name for name in names if name.startswith(VERSIONS)), reverse=True)
        others = [name for name in names if not name.startswith(VERSIONS)]
        for some in ([SEAL_NAME], versions[:-1], versions[-1:], others):
            self._objects.delete(some)

    def list_table(self, folder: str) -> list[str]:
        """See `StoreFiles`."""
        return [name.removeprefix(f"{TABLE_FOLDER}/") for name in self._objects.list(f"{TABLE_FOLDER}/{folder}/")]

    def digest(self, name: str) -> str:
        """See `StoreFiles`."""
        return self._objects.digest(name)

    def measure(self) -> int:
        """See `StoreFiles`."""
        sizes = self._objects.list("")
        own = (name for name in sizes if name.startswith(f"{TABLE_FOLDER}/") or name in (MANIFEST_NAME, SEAL_NAME))
        return sum(sizes[name] for name in own)


def fence_table(bucket: Bucket) -> None:
    """Shut out a writer whose lease was taken over, should it live: what it is about to commit will be refused.

    Its last look at the lease may have been long ago, as when its machine slept. Lance refuses a commit that was begun
    before a version was restored, and so is the newest one here.
    """
    from rse_cli.adapters.lance_faults import explain_failure
    from rse_cli.adapters.lance_snapshot import open_dataset

    with explain_failure(bucket):
        dataset = open_dataset(bucket)
        if dataset is not None:
            dataset.restore()


@contextmanager
def explain_bucket(bucket: Bucket) -> Iterator[None]:
    """Turn what obstore raises into one line."""
    from obstore.exceptions import BaseError

    from rse_cli.adapters.lance_faults import explain_request

    try:
        yield
    except BaseError as error:
        raise StoreError(f"can't reach the store {bucket}: {explain_request(str(error), bucket)}") from error


def _make_tag(meta: Any) -> tuple[tuple[str, str], ...]:
    """Return what names a state of an object: an ETag, or at Google a version."""
    return tuple((key, meta[key]) for key in ("e_tag", "version") if meta[key])
