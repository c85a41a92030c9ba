import csv
import io
import itertools

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from queryveil.kernels.split import gather, last_row_end, split

TEXT = st.text('ab" ,;\té\r', max_size=6)


def parse(data: bytes, delimiter: str, quoted: bool, columns: int = 4) -> list[tuple[int, int, list[str]]]:
    """Line, number of fields, and the first fields of every row."""
    array = np.frombuffer(data, np.uint8)
    fields = split(array, ord(delimiter), quoted, columns, 1)
    texts = []
    for column in range(columns):
        offsets, out = gather(array, fields.start, fields.end, column, quoted)
        texts.append([out[a:b].tobytes().decode() for a, b in itertools.pairwise(offsets)])
    return [
        (int(line), int(width), [texts[c][row] for c in range(min(int(width), columns))])
        for row, (line, width) in enumerate(zip(fields.line, fields.width, strict=True))
    ]


@given(st.lists(st.lists(st.text('ab" ,é', max_size=6), min_size=1, max_size=6), max_size=8))
def test_plain_rows_are_lines_cut_at_the_delimiter(rows):
    text = "\n".join("\t".join(row) for row in rows)
    expected = [
        (number, line.count("\t") + 1, [field.strip(" \t") for field in line.split("\t")[:4]])
        for number, line in enumerate(text.split("\n"), 1)
        if line
    ]
    assert parse(text.encode(), "\t", False) == expected


@given(st.lists(st.lists(st.text('ab",é\n', max_size=6), min_size=2, max_size=4), min_size=1, max_size=8))
def test_quoted_rows_are_what_the_csv_module_wrote(rows):
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerows(rows)
    parsed = parse(out.getvalue().encode(), ",", True)
    assert [fields for _, _, fields in parsed] == rows
    assert [line for line, _, _ in parsed] == [
        1 + sum(len(r) and "".join(r).count("\n") + 1 for r in rows[:i]) for i in range(len(rows))
    ]


def test_a_lone_quote_is_data_in_the_plain_dialect():
    assert parse(b'u\t6" pipe\tx\n', "\t", False) == [(1, 3, ["u", '6" pipe', "x"])]


def test_rows_that_are_not_utf_8_are_reported():
    rows = [b"fine", "café".encode(), b"caf\xe9", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc3", b"\xe0\x80\xaf"]
    fields = split(np.frombuffer(b"\n".join(rows), np.uint8), 9, False, 1, 1)
    assert fields.valid.tolist() == [True, True, False, False, False, False, False]


@given(st.binary(max_size=12))
def test_validity_agrees_with_python(data):
    data = data.replace(b"\n", b"").replace(b"\r", b"")
    fields = split(np.frombuffer(data + b"\n", np.uint8), 9, False, 1, 1)
    try:
        data.decode("utf-8")
        expected = True
    except UnicodeDecodeError:
        expected = False
    assert fields.valid.tolist() == ([expected] if data else [])


def test_last_row_end_does_not_cut_a_quoted_field():
    data = np.frombuffer(b'a,"x\ny"\nb,"open\n', np.uint8)
    assert last_row_end(data, ord(","), True) == 8
    assert last_row_end(data, ord(","), False) == len(data)
    assert last_row_end(np.frombuffer(b"no end", np.uint8), 9, False) == 0
