"""Make the pictures of the docs from real runs on a synthetic log: docs/report.png.

    .venv/bin/python scripts/pictures.py    # needs chromium, chromedriver and the extras attack and report

The picture of the studio, docs/studio.png, is one of those that `SCREENSHOTS=folder make test` keeps.
"""

import base64
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
WIDTH, HEIGHT = 1000, 620


def main() -> None:
    """Draw the top of a report."""
    from tests.reports.browser import browser

    import queryveil as qv

    with tempfile.TemporaryDirectory() as name, browser() as chromium:
        folder = Path(name)
        qv.generate(folder / "log.tsv.gz", users=300, seed=1)
        log = qv.read_log(folder / "log.tsv.gz")
        qv.Affinity(k=5).anonymize(log, seed=1).save(folder / "release")
        qv.report(folder / "release", log, folder / "report.html")
        chromium.open(folder / "report.html", WIDTH)
        clip = {"x": 0, "y": 0, "width": WIDTH, "height": HEIGHT, "scale": 1}
        shot = chromium.tell("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        (ROOT / "docs" / "report.png").write_bytes(base64.b64decode(shot["data"]))


if __name__ == "__main__":
    main()
