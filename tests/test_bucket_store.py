"""A store in an object store, as far as it can be seen without one: address, options, and files in memory."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from rse_cli.adapters.bucket_files import BucketFiles
from rse_cli.adapters.lance_faults import explain_failure
from rse_cli.adapters.lease import LEASE_NAME
from rse_cli.adapters.manifest import describe_root
from rse_cli.adapters.store_folder import MANIFEST_NAME, SEAL_NAME
from rse_cli.config import choose_store
from rse_cli.errors import ConfigError, StoreError, UsageError
from rse_cli.ports import Bucket
from tests.conftest import Run
from tests.test_lease import FakeObjects

BUCKET = Bucket("s3://bucket/index")


@dataclass
class FakeBucket(FakeObjects):
    """Objects in memory that can be listed and deleted; remembers the order of deletions."""

    deleted: list[str] = field(default_factory=list)

    def list(self, prefix: str) -> dict[str, int]:
        return {name: len(held[0]) for name, held in sorted(self.held.items()) if name.startswith(prefix)}

    def delete(self, names: Sequence[str]) -> None:
        for name in names:
            self.held.pop(name, None)
            self.deleted.append(name)


# Addresses and options


@pytest.mark.parametrize(
    ("given", "address"),
    [
        ("s3://bucket/a/b", "s3://bucket/a/b"),
        ("S3://bucket/", "s3://bucket"),
        ("gs://bucket/a", "gs://bucket/a"),
        ("az://container/a/", "az://container/a"),
    ],
)
def test_an_address_names_a_place_in_an_object_store(given: str, address: str) -> None:
    assert choose_store(given, {}) == Bucket(address) == choose_store(None, {"RSE_STORE": given})
    assert str(Bucket(address)) == address


@pytest.mark.parametrize("given", ["http://host/index", "s3://", "gs:///", "file:///tmp/index"])
def test_any_other_address_is_refused(given: str) -> None:
    with pytest.raises(UsageError) as fault:
        choose_store(given, {})

    assert str(fault.value) == f"a store is a folder or s3://bucket/prefix, gs:// or az:// likewise, not {given!r}"


def write_user_file(home: Path, text: str) -> dict[str, str]:
    path = home / ".config" / "rse" / "config.toml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return {"HOME": str(home)}


def test_an_address_that_lacks_a_slash_is_no_folder() -> None:
    with pytest.raises(UsageError, match="'s3:/bucket/index' lacks a slash"):
        choose_store("s3:/bucket/index", {})


@pytest.mark.parametrize(
    ("reason", "advice"),
    [
        ("HTTP error: builder error", "an address that begins with http:// needs AWS_ALLOW_HTTP=true"),
        (
            "PUT http://169.254.169.254/latest/api/token timed out",
            "no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        ),
        (
            "Client error with status 403 Forbidden: <?xml><Error><Code>InvalidAccessKeyId</Code>",
            "its server refuses the credentials, or what they may not do (InvalidAccessKeyId): see to AWS_ACCESS_KEY_ID",
        ),
        ("Client error with status 401 Unauthorized", "(401 Unauthorized): see to AWS_ACCESS_KEY_ID"),
        ("Missing SecretAccessKey", "Missing SecretAccessKey: see to AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"),
        ("connection refused", "see that it can be reached, and run the command again"),
    ],
)
def test_a_request_that_fails_is_told_with_what_to_do(reason: str, advice: str) -> None:
    error = OSError(f"LanceError(IO): Generic S3 error: {reason}\nCaused by: much more")
    with pytest.raises(StoreError) as raised, explain_failure(BUCKET):
        raise error
    assert advice in str(raised.value)
    assert str(raised.value).count("\n") == 0


def test_a_server_that_goes_away_in_the_midst_is_no_damage() -> None:
    # As lance told it when a server was killed while an ingest wrote to it.
    told = 'Invalid input, Failed to connect to namespace: IO { source: Generic { store: "S3", source: ListRequest {'
    with pytest.raises(StoreError) as raised, explain_failure(BUCKET):
        raise OSError(told)
    assert type(raised.value) is StoreError
    assert str(raised.value) == (
        f"the store {BUCKET} failed: no answer: see that it can be reached, and run the command again"
    )


@pytest.mark.parametrize("name", ["AWS_ENDPOINT_URL", "AWS_ENDPOINT", "AWS_ENDPOINT_URL_S3"])
@pytest.mark.parametrize("value", ["localhost:9000", "nonsense", "http://", "http://a b"])
def test_the_address_of_a_server_is_a_url(name: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        choose_store("s3://bucket", {name: value})
    assert str(raised.value) == f"{name} must begin with http:// or https://, not {value!r}"
    environ = write_user_file(tmp_path, f'[store]\naws_endpoint_url = "{value}"\n')
    with pytest.raises(ConfigError, match=r"line 2: aws_endpoint_url must begin with http:// or https://"):
        choose_store("s3://bucket", environ)
    assert isinstance(choose_store("gs://bucket", {name: value}), Bucket)


def test_the_users_file_says_how_to_get_there_where_no_variable_does(tmp_path: Path) -> None:
    environ = write_user_file(
        tmp_path, '[store]\naws_endpoint_url = "http://files"\naws_region = "north"\naws_allow_http = true\n'
    )

    told = (("aws_allow_http", "true"), ("aws_endpoint_url", "http://files"))
    assert choose_store("s3://bucket", environ) == Bucket("s3://bucket", (*told, ("aws_region", "north")))
    assert choose_store("s3://bucket", environ | {"AWS_DEFAULT_REGION": "south"}) == Bucket("s3://bucket", told)


def test_a_bucket_never_shows_its_options() -> None:
    assert "secret" not in repr(Bucket("s3://bucket", (("aws_secret_access_key", "secret"),)))


def test_faults_of_the_users_file_are_told_without_the_values(tmp_path: Path) -> None:
    environ = write_user_file(tmp_path, '[store]\naws_secret_access_key = 12345\naws_regoin = "north"\n')

    with pytest.raises(ConfigError) as fault:
        choose_store("s3://bucket", environ)

    assert str(fault.value).replace(str(tmp_path), "~") == (
        "~/.config/rse/config.toml line 2: aws_secret_access_key must be a text; "
        "~/.config/rse/config.toml line 3: aws_regoin is none of aws_endpoint_url, aws_region, aws_access_key_id, "
        "aws_secret_access_key, aws_session_token, aws_allow_http, google_service_account, azure_storage_account_name, "
        "azure_storage_account_key"
    )


def test_a_project_cannot_say_how_to_get_there(rse: Run, tmp_path: Path) -> None:
    (tmp_path / "rse.toml").write_text('[store]\naws_endpoint_url = "http://elsewhere"\n')

    refused = rse("ingest", cwd=tmp_path)

    assert refused.code == 2
    assert refused.stderr == "rse: rse.toml line 2: aws_endpoint_url is for the user's own file, not for a project\n"


def test_without_the_extra_a_line_says_what_to_install(
    rse: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "obstore.store", None)

    for command in (["ingest"], ["query", "a"], ["status"]):
        refused = rse(*command, "--store", "s3://bucket/index", cwd=tmp_path)

        assert (refused.code, refused.stdout) == (2, b"")
        assert refused.stderr == (
            "rse: s3://bucket/index needs the extra `remote`: run `pip install 'rse-cli[remote]'`\n"
        )


# Files


def test_a_file_is_replaced_as_it_was_last_read(tmp_path: Path) -> None:
    objects = FakeBucket()
    ours, theirs = (BucketFiles(BUCKET, objects) for _ in range(2))
    ours.replace(MANIFEST_NAME, b"1")
    assert theirs.read(MANIFEST_NAME) == b"1"
    theirs.replace(MANIFEST_NAME, b"2")
    theirs.replace(MANIFEST_NAME, b"3")

    with pytest.raises(StoreError) as fault:
        ours.replace(MANIFEST_NAME, b"4")

    assert str(fault.value) == (
        "another process changed manifest.json of the store s3://bucket/index: run the command again"
    )
    assert ours.read(MANIFEST_NAME) == b"3"


def test_a_writer_without_its_lease_replaces_nothing() -> None:
    objects = FakeBucket()
    files = BucketFiles(BUCKET, objects)

    with files.lock(0, lambda _: None):
        objects.put(LEASE_NAME, b"", objects.held[LEASE_NAME][1])
        with pytest.raises(StoreError, match="has taken over the store s3://bucket/index"):
            files.replace(MANIFEST_NAME, b"1")

    assert not files.holds(MANIFEST_NAME)


def test_a_table_is_dropped_oldest_version_first_and_files_last() -> None:
    """Lance counts versions down in the names of their files."""
    objects = FakeBucket()
    versions = [f"chunks.lance/_versions/{2**64 - version}.manifest" for version in (1, 2, 10)]
    for name in (*versions, "chunks.lance/data/1.lance", MANIFEST_NAME, SEAL_NAME):
        objects.put(name, b"", None)

    BucketFiles(BUCKET, objects).discard_table()

    assert objects.deleted == [SEAL_NAME, *versions, "chunks.lance/data/1.lance"]
    assert list(objects.held) == [MANIFEST_NAME]


def test_only_what_is_the_stores_own_counts_as_its_size() -> None:
    objects = FakeBucket()
    for name in (MANIFEST_NAME, "chunks.lance/data/1.lance", "holiday.jpg"):
        objects.put(name, b"12345", None)

    assert BucketFiles(BUCKET, objects).measure() == 10


def test_the_root_of_a_store_that_many_machines_share_is_absolute(tmp_path: Path) -> None:
    assert describe_root(BUCKET, tmp_path / "docs" / "..") == str(tmp_path)
