"""JavaScript for tests: a module evaluated by node, or by Chromium where there is none; and pages driven in Chromium.

Neither belongs to the package: where both are missing, the tests say so in a line and are skipped.
"""

from __future__ import annotations

import base64
import html
import json
import os
import re
import select
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NODE = shutil.which("node")
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = [
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


def evaluate(module: Path, body: str, value: object, folder: Path) -> Any:
    """Return what the function body makes of `value`, with the exports of `module` as `its`."""
    if NODE:
        program = folder / "program.mjs"
        (folder / "module.mjs").write_bytes(module.read_bytes())
        (folder / "value.json").write_text(json.dumps(value), encoding="utf-8")
        program.write_text(
            "import * as its from './module.mjs';\nimport { readFileSync } from 'node:fs';\n"
            "const value = JSON.parse(readFileSync(new URL('value.json', import.meta.url)));\n"
            f"const work = async (its, value) => {{ {body} }};\n"
            "process.stdout.write(JSON.stringify(await work(its, value)));\n",
            encoding="utf-8",
        )
        done = subprocess.run([NODE, str(program)], capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
    if CHROMIUM:
        return _in_a_page(module, body, value, folder)
    pytest.skip("neither node nor Chromium is here: the component is not held against Python")


def _in_a_page(module: Path, body: str, value: object, folder: Path) -> Any:
    source = module.read_text(encoding="utf-8")
    names = re.findall(r"^export (?:async )?(?:function|class|const) (\w+)", source, re.MULTILINE)
    data = json.dumps(value).replace("<", "\\u003c")
    page = folder / "page.html"
    page.write_text(
        f"<!doctype html><pre id=out></pre><script type=module>\n{source}\nconst value = {data};\n"
        f"const its = {{ {', '.join(names)} }};\nconst work = async (its, value) => {{ {body} }};\n"
        "work(its, value).then((out) => document.getElementById('out').textContent = JSON.stringify(out));\n</script>",
        encoding="utf-8",
    )
    assert CHROMIUM is not None
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=30000", "--dump-dom"]
    done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
    found = re.search(r'<pre id="out">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


class Browser:
    """A page in Chromium, driven by its DevTools protocol over a pipe: JSON that ends in a zero."""

    def __init__(self, to: int, back: int, width: int, height: int, dark: bool) -> None:
        self._to, self._back, self._rest, self._number, self._session = to, back, b"", 0, ""
        self.said: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self._ask(f"{domain}.enable")
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        features = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._ask("Emulation.setEmulatedMedia", features=features)

    def _ask(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            if answer.get("method") == "Runtime.exceptionThrown":
                self.said.append(json.dumps(answer["params"]["exceptionDetails"])[:500])
            elif answer.get("method") == "Log.entryAdded":
                self.said.append(answer["params"]["entry"]["text"])
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], 60)
            assert ready, "Chromium does not answer"
            more = os.read(self._back, 1 << 20)
            assert more, "Chromium has ended"
            self._rest += more
        message, _, self._rest = self._rest.partition(b"\0")
        told: dict[str, Any] = json.loads(message)
        return told

    def open(self, path: Path) -> None:
        """Load a file, and wait until its runs are shown."""
        self._ask("Page.navigate", url=path.as_uri())
        self.script(
            "new Promise((done) => { const look = () => { const runs = [...document.querySelectorAll('.brl-run')];"
            f"location.href === {json.dumps(path.as_uri())} && runs.length && runs.every((run) => run.explorable?.rows)"
            " ? done() : setTimeout(look, 20); }; look(); })"
        )

    def script(self, expression: str) -> Any:
        """Return the value of an expression in the page; of a promise what it comes to."""
        told = self._ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def keys(self, *keys: str) -> None:
        """Press keys, one after the other: a letter, or the name of a key, behind ``Shift+`` if need be."""
        for key in keys:
            shift, name = key.startswith("Shift+"), key.removeprefix("Shift+")
            text = {"text": name} if len(name) == 1 else {"text": "\r"} if name == "Enter" else {}
            common = {"key": name, "code": name, "modifiers": 8 if shift else 0}
            if name in _CODES:
                common["windowsVirtualKeyCode"] = _CODES[name]
            self._ask("Input.dispatchKeyEvent", type="keyDown", **common, **text)
            self._ask("Input.dispatchKeyEvent", type="keyUp", **common)

    def drag(self, x: float, y: float, to_x: float, to_y: float) -> None:
        """Press the mouse, move it, and let it go."""
        for kind, at in (("mousePressed", (x, y)), ("mouseMoved", (to_x, to_y)), ("mouseReleased", (to_x, to_y))):
            button = {"button": "left", "clickCount": 1, "buttons": kind != "mouseReleased"}
            self._ask(
                "Input.dispatchMouseEvent",
                type=kind,
                x=at[0],
                y=at[1],
                **(button | {"buttons": int(button["buttons"])}),
            )

    def hover(self, x: float, y: float) -> None:
        """Move the mouse."""
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def picture(self, path: Path) -> None:
        """Write down what is seen."""
        path.write_bytes(base64.b64decode(self._ask("Page.captureScreenshot", format="png")["data"]))


_CODES = {
    "Enter": 13,
    "Tab": 9,
    "ArrowLeft": 37,
    "ArrowUp": 38,
    "ArrowRight": 39,
    "ArrowDown": 40,
    "Home": 36,
    "End": 35,
}


@contextmanager
def chromium(folder: Path, width: int = 1000, height: int = 800, dark: bool = False) -> Iterator[Browser]:
    """A browser with a profile of its own."""
    if not CHROMIUM:
        pytest.skip("Chromium is not here: no page is driven")
    (in_read, in_write), (out_read, out_write) = os.pipe(), os.pipe()
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--remote-debugging-pipe", "about:blank"]
    line = f"exec {shlex.join(command)} 3<&{in_read} 4>&{out_write}"
    with (
        (folder / "chromium.log").open("w") as log,
        subprocess.Popen(
            ["bash", "-c", line], pass_fds=(in_read, out_write), stdout=log, stderr=log, stdin=subprocess.DEVNULL
        ) as process,
    ):
        os.close(in_read)
        os.close(out_write)
        try:
            yield Browser(in_write, out_read, width, height, dark)
        finally:
            os.close(in_write)  # it ends with its pipe
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
            os.close(out_read)
