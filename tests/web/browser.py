"""A headless Chromium, driven over two pipes (Chrome DevTools Protocol, --remote-debugging-pipe)."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

PROGRAM = shutil.which("chromium")


class Browser:
    """Use it as a context. One page; calls wait for their answer."""

    def __init__(self, width=1400, height=900, dark=False):
        self.width, self.height, self.dark = width, height, dark
        self.number, self.events = 0, []

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="hb-browser-", dir="/tmp")
        reads, their_writes = os.pipe()
        their_reads, writes = os.pipe()
        self.reads, self.writes, self.buffer = reads, writes, b""
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]

        def as_three_and_four():
            # Above both, so that neither is overwritten by the other.
            a, b = os.dup2(their_reads, 40), os.dup2(their_writes, 41)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [PROGRAM, *flags, "--remote-debugging-pipe", f"--user-data-dir={self.folder}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(3, 4, their_reads, their_writes),
            preexec_fn=as_three_and_four,
            start_new_session=True,
        )
        os.close(their_reads)
        os.close(their_writes)
        self.session = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self.session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(self.width, self.height)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.reads)
        os.close(self.writes)
        shutil.rmtree(self.folder, ignore_errors=True)

    def call(self, method, seconds=60, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + seconds
        while True:
            answer = self._next(end)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self, end):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.reads], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise AssertionError("the browser does not answer")
            piece = os.read(self.reads, 1 << 20)
            if not piece:
                raise AssertionError("the browser has ended")
            self.buffer += piece
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def resize(self, width, height, dark=None):
        self.width, self.height = width, height
        self.dark = self.dark if dark is None else dark
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)

    def open(self, address):
        self.call("Page.navigate", url=address)

    def run(self, script):
        """What the expression gives; a promise is waited for."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise AssertionError(found["exceptionDetails"])
        return found["result"].get("value")

    def wait_until(self, script, seconds=30):
        end = time.monotonic() + seconds
        while not self.run(f"!!({script})"):
            if time.monotonic() > end:
                raise AssertionError(f"{script}: not within {seconds} s; the page says:\n{self.text()}")
            time.sleep(0.05)

    def text(self):
        return self.run("document.body.innerText")

    def picture(self, file):
        """All of the page, as far as it is long."""
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        pathlib.Path(file).write_bytes(base64.b64decode(shot["data"]))

    def complaints(self):
        """What the page's scripts or its rules have complained of."""
        self.run("0")
        found = []
        for event in self.events:
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(event["params"]["exceptionDetails"].get("exception", {}).get("description", "?"))
            if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
                found.append(event["params"]["entry"]["text"])
        return found

    def hosts(self):
        """To whom requests went."""
        requests = [
            e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"
        ]
        return {address.split("/")[2] for address in requests if address.startswith("http")}
