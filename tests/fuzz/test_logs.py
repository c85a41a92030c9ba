"""Whatever the log, the answer is a log or one sentence that quotes nothing of it."""

import shutil
import signal
import sys
import warnings
from pathlib import Path
from random import Random

import pytest

import queryveil as qv
from queryveil.cli import main
from tests.fuzz.budget import seeds
from tests.fuzz.logs import SECRET, WRITERS, Case, make_case, make_table


def paths_of(case: Case, folder: Path) -> list[Path]:
    paths = []
    for name, data in case.files.items():
        path = folder / name
        if "/" in name:  # a partitioned log is named by its folder
            shutil.rmtree(folder / "partitioned", ignore_errors=True)
            path = folder / "partitioned" / name
            path.parent.mkdir(parents=True)
        path.write_bytes(data)
        paths.append(folder / "partitioned" if "/" in name else path)
    return paths


def check_sentence(sentence: str, seed: int) -> None:
    assert SECRET not in sentence, f"seed {seed}: {sentence}"
    assert sentence.isprintable(), f"seed {seed}: {sentence!r}"
    assert sentence.endswith("."), f"seed {seed}: {sentence}"


def read(source, seed: int, **options) -> qv.QueryLog | None:
    try:
        return qv.read_log(source, **options)
    except qv.QueryveilError as refused:
        check_sentence(str(refused), seed)
    except Exception as error:
        raise AssertionError(f"seed {seed}") from error
    return None


def release(log: qv.QueryLog, folder: Path, seed: int) -> None:
    """What can be read can be released, and what is released is verified."""
    try:
        made = qv.Equality(k=2).anonymize(log)
        made.save(folder / "release", format=Random(seed).choice(["parquet", "csv"]), overwrite=True)
    except qv.QueryveilError as refused:
        check_sentence(str(refused), seed)
        return
    except Exception as error:
        raise AssertionError(f"seed {seed}") from error
    found = qv.verify(folder / "release", log)
    assert found.holds, f"seed {seed}"


@pytest.mark.parametrize("format", WRITERS)
def test_any_file_is_read_or_refused(format, tmp_path):
    for seed in seeds(12):
        case = make_case(format, seed)
        log = read(paths_of(case, tmp_path), seed, **case.options)
        if log is not None and log.n_users > 1:
            release(log, tmp_path, seed)


def test_any_table_is_read_or_refused(tmp_path):
    for seed in seeds(20):
        log = read(make_table(seed), seed, max_bad_rows=1.0)
        if log is not None and log.n_users > 1:
            release(log, tmp_path, seed)


@pytest.fixture
def stopping():
    """The command line sets signals and warnings for its process; here it is a guest."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    with warnings.catch_warnings():
        yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_the_command_line_ends_with_a_code_of_its_own(tmp_path, monkeypatch, capsys, stopping):
    for seed in seeds(12):
        case = make_case(Random(seed).choice(list(WRITERS)), seed)
        words = ["profile", *map(str, paths_of(case, tmp_path)), "--json"]
        for name, value in case.options.items():
            given = ",".join(f"{one}={other}" for one, other in value.items()) if name == "columns" else value
            words.append(f"--{name.replace('_', '-')}={given}")
        monkeypatch.setattr(sys, "argv", ["queryveil", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        _, told = capsys.readouterr()
        assert ended.value.code in (None, 0, 2), f"seed {seed}: {told}"
        assert SECRET not in told, f"seed {seed}: {told}"
