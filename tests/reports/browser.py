"""A browser without a window, driven by WebDriver's own protocol: HTTP and JSON, nothing to install but the browser."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]
_direct = build_opener(ProxyHandler({}))


class Browser:
    """A page in a browser, and what it logged."""

    def __init__(self, address, session):
        self._at = f"{address}/session/{session}"

    def _post(self, what, **given):
        return ask(f"{self._at}/{what}", given)

    def open(self, page, width=1280, *, dark=False):
        """Open a file and wait until its charts are drawn."""
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **screen)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.tell("Emulation.setEmulatedMedia", features=features)
        self.logged("performance")
        self._post("url", url=Path(page).resolve().as_uri())
        for _ in range(200):
            if self.run("return document.documentElement.dataset.drawn !== undefined"):
                return
            time.sleep(0.1)
        raise AssertionError(f"The charts were not drawn: {self.logged('browser')}")

    def visit(self, address, width=1280, *, dark=False):
        """Open an address, in a window of some width."""
        screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.tell("Emulation.setDeviceMetricsOverride", **screen)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.tell("Emulation.setEmulatedMedia", features=features)
        self._post("url", url=address)

    def until(self, script, seconds=60):
        """Wait until JavaScript says so, and return what it says."""
        for _ in range(int(seconds * 10)):
            found = self.run(script)
            if found:
                return found
            time.sleep(0.1)
        raise AssertionError(f"Not so after {seconds} s: {script}; {self.run('return document.body.innerText')[:2000]}")

    def tabs(self):
        """The windows that are open, the current one first."""
        now = ask(f"{self._at}/window")
        return [now, *(one for one in ask(f"{self._at}/window/handles") if one != now)]

    def new_tab(self):
        """Open another tab, and go there."""
        self._post("window", handle=self._post("window/new", type="tab")["handle"])

    def to_tab(self, handle):
        """Go to a tab."""
        self._post("window", handle=handle)

    def press(self, key):
        """Press a key, for what has the focus."""
        named = {"key": key, "code": key, "windowsVirtualKeyCode": {"Enter": 13, "ArrowRight": 39, "Tab": 9}[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.tell("Input.dispatchKeyEvent", type="keyDown", **named, **text)
        self.tell("Input.dispatchKeyEvent", type="keyUp", **named)

    def run(self, script, *given):
        """Run JavaScript in the page."""
        return self._post("execute/sync", script=script, args=list(given))

    def tell(self, command, **given):
        """A command of the DevTools protocol."""
        return self._post("goog/cdp/execute", cmd=command, params=given)

    def alert(self):
        """The text of the dialogue that the page opened."""
        return ask(f"{self._at}/alert/text")

    def logged(self, kind):
        """What was logged since the last time: by the page (`browser`), or about it (`performance`)."""
        return [entry["message"] for entry in self._post("se/log", type=kind)]

    def requests(self):
        """The addresses that were asked for since the page was opened."""
        events = [json.loads(line)["message"] for line in self.logged("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def hover(self, x, y):
        """Bring the pointer over a place of the window."""
        self.tell("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def screenshot(self, path):
        """The whole page as a PNG."""
        size = self.tell("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        shot = self.tell("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def pdf(self, path):
        """The page as it is printed on A4."""
        printed = self.tell("Page.printToPDF", paperWidth=8.27, paperHeight=11.69, printBackground=False)
        Path(path).write_bytes(base64.b64decode(printed["data"]))


def ask(address, given=None, method=None):
    """Ask the driver."""
    body = None if given is None else json.dumps(given).encode()
    request = Request(address, body, {"Content-Type": "application/json"}, method=method)
    try:
        with _direct.open(request, timeout=60) as answer:
            return json.load(answer)["value"]
    except HTTPError as error:
        raise AssertionError(json.load(error)["value"]["message"]) from None


@contextmanager
def browser():
    """Start a browser, and end it."""
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/out", "w+") as out:
        driver = subprocess.Popen([DRIVER, "--port=0"], stdout=out, stderr=subprocess.STDOUT)
        try:
            address = f"http://127.0.0.1:{_port(Path(out.name))}"
            options = {"binary": CHROMIUM, "args": [*FLAGS, f"--user-data-dir={folder}/profile"]}
            needed = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
            session = ask(f"{address}/session", {"capabilities": {"alwaysMatch": needed}})["sessionId"]
            try:
                yield Browser(address, session)
            finally:
                with suppress(URLError, AssertionError):
                    ask(f"{address}/session/{session}", method="DELETE")
        finally:
            driver.terminate()
            driver.wait(20)


def _port(out):
    """The port that the driver chose, as it says itself."""
    for _ in range(200):
        for word in out.read_text().replace(".", " ").split("port ")[1:]:
            if word.split()[0].isdigit() and word.split()[0] != "0":
                return int(word.split()[0])
        time.sleep(0.1)
    raise AssertionError(f"The driver did not start: {out.read_text()}")
