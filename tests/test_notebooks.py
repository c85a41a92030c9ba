"""In a notebook: a real kernel, as Jupyter starts it, without the widgets that many installations lack."""

import pytest

nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
pytest.importorskip("ipykernel", reason="needs ipykernel")

PLAIN = "import sys\nsys.modules['ipywidgets'] = None"
HEARD = """
said, published = [], get_ipython().display_pub.publish
def publish(data, **more):
    said.append(data["text/html"])
    published(data, **more)
get_ipython().display_pub.publish = publish
"""
READ = """
import pyarrow as pa
import queryveil as qv
rows = {"user": [*"abcabcabc"], "query": [*"xxxyyyzzz"]}
log = qv.read_log(pa.table(rows), progress=qv.show_progress)
release = qv.Equality(k=2).anonymize(log, seed=1)
qv.evaluate(release, log, progress=qv.show_progress)
log
"""


@pytest.fixture(scope="module")
def cells(tmp_path_factory):
    """What some cells printed and showed, run one after the other in one kernel."""
    sources = [
        PLAIN,
        HEARD,
        READ,
        "print(said)",
        "qv.show_progress('<b>', 'x'); qv.show_progress(3, 4_000)",
        "print(said)",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    folder = tmp_path_factory.mktemp("notebook")
    nbclient.NotebookClient(notebook, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return [cell.outputs for cell in notebook.cells]


def test_a_log_is_read_and_previewed(cells):
    assert "<QueryLog: 9 events, 3 users, 3 distinct queries>" in cells[2][-1].data["text/plain"]
    assert "<table>" in cells[2][-1].data["text/html"]


def test_progress_is_one_line_that_is_gone_when_the_cell_is_done(cells):
    said = cells[3][0].text
    assert said.startswith("['<small>9 rows</small>', ")
    assert said.count("<small>") > 3
    assert said.rstrip().endswith(", '']")
    assert [output.data["text/html"] for output in cells[2][:-1]] == [""]


def test_each_cell_has_a_line_of_its_own_and_nothing_in_it_is_markup(cells):
    assert "'<small>&lt;b&gt; x</small>', '<small>3 of 4,000</small>', '']" in cells[5][0].text
    assert len(cells[4]) == 1
