import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file and give its path."""

    def make(name: str, content: str | bytes):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make
