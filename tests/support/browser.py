"""A headless Chromium, driven through the DevTools protocol over two pipes.

No package is needed for that.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PHONE, DESK = 390, 1400  # width of a window in pixels
SILENCE = 300  # seconds after which a browser is taken for dead
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
PROGRAM = next(filter(None, map(shutil.which, NAMES)), None)
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
)


class Page:
    """A tab that shows one file.

    Attributes:
      errors: what the console reported: exceptions, failed requests, violations of the content
        security policy.
    """

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.errors: list[str] = []

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def evaluate(self, expression: str) -> Any:
        """Return the value of a JavaScript expression. Raises RuntimeError for one that throws."""
        answer = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def type(self, text: str) -> None:
        """Type a text into the element that has the focus."""
        self.call("Input.insertText", text=text)

    def screenshot(self, file: Path, whole: bool = False) -> None:
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(image["data"]))

    def _told(self, event: dict[str, Any]) -> None:
        parameters = event["params"]
        if event["method"] == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        elif event["method"] == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(
                f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}"
            )
        elif event["method"] == "Runtime.consoleAPICalled" and parameters["type"] in (
            "error",
            "assert",
        ):
            self.errors.append(str([argument.get("value") for argument in parameters["args"]]))


class Browser:
    """A running browser. Use :func:`started`."""

    def __init__(self, to: int, back: int) -> None:
        self._to, self._back, self._rest = to, back, b""
        self._numbers = itertools.count(1)
        self._pages: dict[str, Page] = {}
        self._loaded: set[str] = set()
        self._target = ""

    def open(
        self,
        file: Path | str,
        width: int = DESK,
        height: int = 900,
        dark: bool = False,
        media: str = "screen",
    ) -> Page:
        """Return the loaded page of a file (or of a URL).

        The page that was open before is closed.
        """
        if self._target:
            self.call("Target.closeTarget", targetId=self._target)
        self._target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=self._target, flatten=True)[
            "sessionId"
        ]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        mobile = width < 720
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=mobile,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        page.call("Page.navigate", url=file if isinstance(file, str) else file.resolve().as_uri())
        while session not in self._loaded:
            self._handle(self._read())
        page.evaluate("document.fonts.ready.then(() => 1)")
        return page

    def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer. Raises RuntimeError for one that is refused."""
        number = next(self._numbers)
        message: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        data = (
            json.dumps({**message, "sessionId": session} if session else message).encode() + b"\0"
        )
        while data:
            data = data[os.write(self._to, data) :]
        while True:
            answer = self._read()
            if answer.get("id") != number:
                self._handle(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                result: dict[str, Any] = answer["result"]
                return result

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._back], [], [], SILENCE)[0]:
                raise RuntimeError(f"the browser has said nothing for {SILENCE} seconds")
            data = os.read(self._back, 1 << 20)
            if not data:
                raise RuntimeError("the browser has ended")
            self._rest += data
        first, _, self._rest = self._rest.partition(b"\0")
        message: dict[str, Any] = json.loads(first)
        return message

    def _handle(self, event: dict[str, Any]) -> None:
        session = event.get("sessionId", "")
        if event.get("method") == "Page.loadEventFired":
            self._loaded.add(session)
        elif session in self._pages and "method" in event:
            self._pages[session]._told(event)


@contextlib.contextmanager
def started(program: str | None = PROGRAM) -> Iterator[Browser]:
    """Start a browser, and end it.

    It reads commands from descriptor 3 and writes answers to descriptor 4.
    """
    assert program, f"none of {', '.join(NAMES)} is installed"
    theirs_in, ours_out = _high_pipe()
    ours_in, theirs_out = _high_pipe()

    def connect() -> None:
        os.dup2(theirs_in, 3)
        os.dup2(theirs_out, 4)

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [
            program,
            *_FLAGS,
            "--remote-debugging-pipe",
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        quiet = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        with subprocess.Popen(command, preexec_fn=connect, pass_fds=(3, 4), **quiet) as process:  # type: ignore[call-overload]
            os.close(theirs_in)
            os.close(theirs_out)
            try:
                yield Browser(ours_out, ours_in)
            finally:
                os.close(ours_out)
                os.close(ours_in)
                process.terminate()


def _high_pipe() -> tuple[int, int]:
    """Return a pipe whose descriptors are not 3 or 4, which the browser's own ones take."""
    ends = os.pipe()
    high = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return high[0], high[1]
