"""Rows of a query against SQLite, PostgreSQL and what else has an ADBC driver."""

import glob
import os
import shutil
import sqlite3
import subprocess
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

import queryveil as qv
from queryveil.errors import QueryveilError
from tests.cli.conftest import run  # noqa: F401
from tests.sources.conftest import free_port, wait_for

ROWS = [
    (f"u{i % 7}", f"tea {i % 5}", f"2026-01-01 10:{i % 60:02}:00", i % 9 + 1 if i > 3000 else None) for i in range(4000)
]
TABLE = pa.table(dict(zip(("user", "query", "time", "rank"), map(list, zip(*ROWS, strict=True)), strict=True)))
ALL = 'SELECT who AS "user", text AS query, at AS time, rank FROM log'


@pytest.fixture
def sqlite(tmp_path):
    """A SQLite file whose ranks are missing for longer than any driver looks ahead."""
    path = tmp_path / "log.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE log (who, text, at, rank)")
    connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?)", ROWS)
    connection.execute("CREATE TABLE secrets (secret)")
    connection.execute("INSERT INTO secrets VALUES (x'ff00')")
    connection.commit()
    connection.close()
    return f"sqlite:///{path}"


def test_sqlite(sqlite):
    found = qv.read_log(sqlite, sql=ALL)
    assert found.stats.content == qv.read_log(TABLE).stats.content


@pytest.mark.parametrize("query", ["VACUUM INTO 'stolen.db'", "ATTACH 'new.db' AS n", "PRAGMA user_version = 7"])
def test_a_query_of_sqlite_makes_no_file(sqlite, tmp_path, monkeypatch, query):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(QueryveilError, match="the query would change something"):
        qv.read_log(sqlite, sql=query)
    assert [file.name for file in tmp_path.iterdir()] == ["log.db"]


def test_a_query_of_sqlite_may_do_all_that_reads(sqlite):
    connection = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    connection.execute("CREATE VIRTUAL TABLE found USING fts5(text)")
    connection.execute("INSERT INTO found VALUES ('tea'), ('mug')")
    connection.commit()
    connection.close()
    assert qv.read_log(sqlite, sql="SELECT 1 AS user, text AS query FROM found WHERE found MATCH 'tea'").stats.rows == 1
    query = (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5)"
        " SELECT who || i AS user, upper(text) AS query, value AS rank, count(*) OVER () AS together"
        " FROM (SELECT * FROM log LIMIT 3), n, json_each('[1, 2]')"
    )
    assert qv.read_log(sqlite, sql=query).stats.rows == 30


def test_values_of_sqlite_need_no_type(sqlite):
    both = "SELECT 7 AS user, 'tea' AS query, 3.0 AS rank UNION ALL SELECT 'u', 'mug', '2'"
    assert qv.read_log(sqlite, sql=both).stats.rows == 2


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("SELECT secret AS user, 'x' AS query FROM secrets", "neither text nor a number"),
        ("SELECT secret FROM secret_table", "has no such table"),
        ("DELETE FROM secrets", "the query would change something"),
        ("SELECT 1; DELETE FROM secrets", "does not understand"),
        ("", "gives no rows"),
    ],
)
def test_a_query_that_cannot_be_read_is_one_sentence(sqlite, query, sentence):
    with pytest.raises(QueryveilError, match=sentence) as caught:
        qv.read_log(sqlite, sql=query)
    assert "secret" not in str(caught.value)
    assert "\n" not in str(caught.value)
    connection = sqlite3.connect(sqlite.removeprefix("sqlite:///"))
    assert connection.execute("SELECT count(*) FROM secrets").fetchone() == (1,)
    connection.close()


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("sqlite:///nothing.db", "There is no file at sqlite:///nothing.db"),
        ("log.tsv", "sql is for one database"),
        (["sqlite:///a", "sqlite:///b"], "sql is for one database"),
        ("a-b://me:pass-word@host/x", "a-b://host/x is not the address of a database"),
        ("nosuchdriver://me:pass-word@host/x", "there is no ADBC driver"),
        ("postgresql://me:pass-word@localhost:1/x", "The database postgresql://localhost:1/x cannot be read"),
    ],
)
def test_a_database_that_is_not_there_is_one_sentence(source, sentence):
    pytest.importorskip("adbc_driver_postgresql")
    with pytest.raises(QueryveilError, match=sentence) as caught:
        qv.read_log(source, sql="SELECT 1")
    assert "pass-word" not in str(caught.value)


def test_on_the_command_line(sqlite, run, tmp_path):  # noqa: F811
    words = ("--from-sql", ALL, "--method", "equality", "-k", 3, "--link", "none", "-o", tmp_path / "out")
    code, _, err = run("anonymize", sqlite, *words)
    assert code == 0, err
    assert not any(
        b"FROM log" in file.read_bytes() or b"log.db" in file.read_bytes() for file in (tmp_path / "out").iterdir()
    )
    code, _, err = run("verify", tmp_path / "out", "--original", sqlite, "--from-sql", ALL)
    assert code == 0, err
    code, _, err = run("profile", sqlite, "--from-sql", "SELECT secret")
    assert code == 2
    assert "check the address and --from-sql" in err
    assert "secret" not in err
    code, _, err = run("profile", tmp_path / "log.tsv", "--from-sql", ALL)
    assert "--from-sql is for one database" in err


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL server on a free port; its user has a password."""
    pytest.importorskip("adbc_driver_postgresql")
    homes = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"))
    initdb = homes[-1] if homes else shutil.which("initdb")
    if initdb is None:
        pytest.skip("PostgreSQL is not installed")
    other = {"user": "postgres", "group": "postgres"} if os.geteuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="postgres-"))
    if other:
        shutil.chown(folder, **other)
    (folder / "password").write_text("pass-word")
    os.chmod(folder / "password", 0o644)
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder, **other}
    made = [initdb, "-D", folder / "data", "-U", "me", "-A", "scram-sha-256", "--pwfile", folder / "password", "-N"]
    subprocess.run(made, check=True, **quiet)
    port = free_port()
    options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={folder}", "-c", "fsync=off"]
    postgres = Path(initdb).with_name("postgres")
    process = subprocess.Popen([postgres, "-D", folder / "data", "-p", str(port), *options], **quiet)
    try:
        wait_for(port, process)
        address = f"postgresql://me:pass-word@127.0.0.1:{port}/postgres"
        fill(address)
        yield address
    finally:
        process.terminate()
        process.wait()
        shutil.rmtree(folder)


def connected(address):
    from adbc_driver_postgresql import dbapi

    for _ in range(50):
        try:
            return dbapi.connect(address)
        except dbapi.OperationalError as error:
            last = error  # it starts
    raise last


def fill(address):
    with connected(address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE log (id bigint, who text, text text, at timestamp, rank integer, worth numeric)")
        more = TABLE.rename_columns(["who", "text", "at", "rank"])
        at = more["at"].cast(pa.timestamp("us"))
        cursor.adbc_ingest("rows", more.set_column(2, "at", at), mode="create")
        cursor.execute("INSERT INTO log SELECT 1, who, text, at, rank, 1.5 FROM rows")
        connection.commit()


def test_postgresql(server):
    found = qv.read_log(server, sql=ALL)
    assert found.stats.content == qv.read_log(TABLE).stats.content


def test_kinds_of_postgresql(server):
    query = (
        "SELECT md5(who)::uuid AS user, text AS query, at AT TIME ZONE 'UTC' AS time, worth, '{}'::jsonb AS more,"
        " rank::smallint AS rank, at::date AS day FROM log"
    )
    found = qv.read_log(server, sql=query)
    assert (found.stats.users, found.stats.rows) == (7, 4000)
    assert {"worth", "day"} <= set(found.stats.extras)


def test_the_password_may_come_from_the_environment(server, monkeypatch):
    monkeypatch.setenv("PGPASSWORD", "pass-word")
    assert qv.read_log(server.replace(":pass-word", ""), sql=ALL).stats.rows == 4000


@pytest.mark.parametrize(
    ("change", "query", "sentence"),
    [
        (("pass-word", "wrong-word"), ALL, "cannot be read"),
        (("/postgres", "/nothing"), ALL, "cannot be read"),
        (("", ""), "SELECT secret FROM nothing", "no such table or column"),
        (
            ("", ""),
            "DELETE FROM log RETURNING who AS user, text AS query",
            "would change something|does not understand",
        ),
        (("", ""), "SELECT 1; DELETE FROM log", "does not understand|refuses the query"),
        (("", ""), "SELECT who AS user, text AS query, 1 / (rank - 5) AS secret FROM log", "cannot be read"),
    ],
)
def test_what_postgresql_refuses_is_one_sentence(server, change, query, sentence):
    old, new = change
    address = server.replace(f":{old}", f":{new}") if "word" in old else server.removesuffix(old) + new
    with pytest.raises(QueryveilError, match=sentence) as caught:
        qv.read_log(address, sql=query)
    assert not any(word in str(caught.value) for word in ("secret", "pass-word", "wrong-word", "\n"))
    with connected(server) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log")
        assert cursor.fetchone() == (4000,)


def test_a_server_that_ends_the_query_in_the_middle(server):
    query = (
        "SELECT 'u' || n AS user, repeat('tea ', 20) AS query, CASE WHEN n = 100000 THEN"
        " pg_terminate_backend(pg_backend_pid())::text END AS x FROM generate_series(1, 150000) AS n"
    )
    with pytest.raises(QueryveilError, match=r"cannot be read: it (stopped in the middle|was shut down)"):
        qv.read_log(server, sql=query)


def test_any_driver_by_a_profile_of_its_connection(server, tmp_path, monkeypatch):
    from adbc_driver_postgresql import _driver_path

    profile = f'profile_version = 1\ndriver = "{_driver_path()}"\n[Options]\nuri = "{server}"\n'
    (tmp_path / "mine.toml").write_text(profile)
    monkeypatch.setenv("ADBC_PROFILE_PATH", str(tmp_path))
    assert qv.read_log("profile://mine", sql=ALL).stats.rows == 4000
    with pytest.raises(QueryveilError, match="The database profile://mine cannot be read"):
        qv.read_log("profile://mine", sql="SELECT 1 FROM nothing")
