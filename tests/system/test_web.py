"""`hpcbatch web`: who gets in, and what a browser shows of a running engine."""

import contextlib
import http.client
import json
import pathlib
import re
import resource
import select
import signal
import socket
import stat
import subprocess
import sys
import threading

import pytest
from engine_at_home import EngineAtHome
from own_python import ROOT, own_python
from patience import SLOWNESS, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "web"))
from browser import Browser  # noqa: E402

HOSTILE = '"><img src=x onerror=document.title="stolen"><script>document.title="stolen"</script>'


@pytest.fixture(scope="module")
def engine():
    with EngineAtHome() as engine:
        engine.ok("engine", "start")
        yield engine


class Page:
    """A `hpcbatch web` and, once `enter` was called, the cookie of a browser."""

    def __init__(self, engine, *options):
        self.command = [engine.program, "web", "--json", *options]
        self.env, self.cookie = engine.env, None

    def __enter__(self):
        self.process = subprocess.Popen(
            self.command, env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        said = json.loads(self.process.stdout.readline())
        self.link, self.port = said["link"], said["port"]
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20 * SLOWNESS)
        self.process.stdout.close()

    @property
    def token(self):
        return self.link.partition("token=")[2]

    def ask(self, method, target, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30 * SLOWNESS)
        if self.cookie:
            headers.setdefault("Cookie", self.cookie)
        headers = {name.replace("_", "-"): value for name, value in headers.items() if value is not None}
        connection.putrequest(method, target, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        data = body.encode() if body is not None else None
        if data is not None:
            connection.putheader("Content-Length", str(len(data)))
        connection.endheaders(data)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        return answer.status, text, answer.headers

    def enter(self):
        status, _, headers = self.ask("GET", f"/?token={self.token}")
        assert status == 303 and headers["Location"] == "/"
        self.cookie = headers["Set-Cookie"].partition(";")[0]
        return headers["Set-Cookie"]


def test_the_link_lets_in_once_and_then_the_cookie_does(engine):
    with Page(engine) as page:
        assert page.ask("GET", "/")[0] == 403
        assert page.ask("GET", "/?token=" + page.token[:-1] + "x")[0] == 403
        cookie = page.enter()
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and page.token not in cookie
        cookie, page.cookie = page.cookie, None
        status, text, _ = page.ask("GET", f"/?token={page.token}")
        assert status == 403 and "used already" in text
        assert page.ask("GET", "/api/engine")[0] == 403
        page.cookie = cookie
        status, text, headers = page.ask("GET", "/")
        assert status == 200 and "<main" in text
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert headers["X-Content-Type-Options"] == "nosniff" and headers["Referrer-Policy"] == "no-referrer"
        # No code in the page itself: the rule above would not run it.
        assert not re.search(r"<script(?![^>]*\bsrc=)|\bon\w+=|style=", text)


def test_other_hosts_origins_and_paths_are_refused(engine):
    with Page(engine) as page:
        page.enter()
        assert page.ask("GET", "/api/engine", Host="evil.example")[0] == 421
        assert page.ask("GET", "/api/engine", Origin="http://evil.example")[0] == 403
        for target in ("/../../../etc/passwd", "/api/tasks/../../../etc/passwd", "//etc/passwd", "/api/tasks/..%2f"):
            assert page.ask("GET", target)[0] in (400, 404), target
        assert page.ask("GET", "/api/sites/local/past%2djobs")[0] == page.ask("GET", "/api/engine/")[0] == 400
        good = json.dumps({"ids": ["1"]})
        assert page.ask("POST", "/api/tasks/cancel", good)[0] == 403, "not marked by the page"
        for target in ("/api/engine/stop", "/api/tasks", "/api/submits", "/api/dropboxes", "/api/engine/backup"):
            assert page.ask("POST", target, "{}", X_Hpcbatch="1")[0] == 404, target


def test_a_stream_that_the_engine_refuses_is_refused(engine):
    with Page(engine) as page:
        page.enter()
        status, text, _ = page.ask("GET", "/api/tasks/999999.1/log?follow=1")
        assert status == 404 and "999999" in json.loads(text)["error"]


def test_view_changes_nothing(engine):
    array = engine.submit("--hold", "--array", "1-3", "--", "true")
    with Page(engine, "--view") as page:
        page.enter()
        status, text, _ = page.ask("POST", "/api/tasks/cancel", json.dumps({"ids": [array]}), X_Hpcbatch="1")
        assert status == 403 and "only looks" in text
    with Page(engine) as page:
        page.enter()
        status, text, _ = page.ask("POST", "/api/tasks/cancel", json.dumps({"ids": [array]}), X_Hpcbatch="1")
        assert status == 200 and json.loads(text)["tasks"] == 3


def test_all_that_came_in_one_submit_is_changed_at_once(engine, tmp_path):
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(json.dumps({"command": ["true"], "name": f"part-{n}"}) + "\n" for n in range(3)))
    other = engine.submit("--hold", "--", "true")
    whole = engine.ok("submit", "--hold", "--file", tasks).strip()
    with Page(engine) as page:
        page.enter()
        status, text, _ = page.ask("POST", "/api/tasks/cancel", json.dumps({"ids": [whole]}), X_Hpcbatch="1")
        assert status == 200 and json.loads(text)["tasks"] == 3, (whole, text)
        assert engine.show(other)["state"] == "held"
        wrong = f"{int(other)}-{int(other) + 1}"
        status, text, _ = page.ask("POST", "/api/tasks/cancel", json.dumps({"ids": [wrong]}), X_Hpcbatch="1")
        assert status == 404 and wrong in text, "it came alone"


def test_ten_thousand_connections_do_not_end_the_page(engine):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))
    many = min(10_000, most[1] - 200)
    with Page(engine) as page, contextlib.ExitStack() as stack:
        page.enter()
        for _ in range(many):
            one = stack.enter_context(socket.socket())
            one.settimeout(10 * SLOWNESS)
            one.connect(("127.0.0.1", page.port))
        assert page.process.poll() is None
        with open(f"/proc/{page.process.pid}/status") as status:
            (peak,) = re.findall(r"VmHWM:\s+(\d+)", status.read())
        assert int(peak) < 200_000, "KB"
        stack.close()
        wait_until(lambda: is_served(page), what="a page for those who come after them")
    resource.setrlimit(resource.RLIMIT_NOFILE, most)


def is_listened_at(place):
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as one:
        one.connect(str(place))
        return True


def is_served(page):
    with contextlib.suppress(OSError, http.client.HTTPException):
        return page.ask("GET", "/")[0] == 200


def test_changes_come_as_they_happen_and_an_end_ends_all(engine):
    with Page(engine) as page:
        page.enter()
        heard, has_ended = [], threading.Event()

        def listen():
            connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60 * SLOWNESS)
            connection.request("GET", "/live", headers={"Cookie": page.cookie})
            answer = connection.getresponse()
            while line := answer.readline():
                if line.startswith(b"data: "):
                    heard.append(json.loads(line[6:]))
            has_ended.set()

        listener = threading.Thread(target=listen)
        listener.start()
        array = engine.submit("--array", "1-5", "--name", "seen", "--", "true")
        engine.wait(array)

        def is_done():
            arrays = [change.get("sections", {}).get("arrays", {}).get(array) for change in heard]
            return any(one and one["counts"]["done"] == 5 for one in arrays)

        wait_until(is_done)
        wait_until(lambda: sum(len(change.get("runs", [])) for change in heard) >= 5)
        assert heard[0]["page"] == {"may_change": True}
        # The page may have been there before the first look at the engine.
        assert next(change["engine"] for change in heard if "engine" in change)["state"] == "running"
        page.process.send_signal(signal.SIGINT)
        assert page.process.wait(10 * SLOWNESS) == 0
        assert has_ended.wait(10 * SLOWNESS)
        listener.join()


def test_behind_a_proxy_it_listens_on_a_socket_of_its_user(engine, tmp_path):
    place = tmp_path / "page"
    process = subprocess.Popen(
        [engine.program, "web", "--socket", str(place)], env=engine.env, stdin=subprocess.DEVNULL
    )
    try:
        wait_until(lambda: is_listened_at(place), what="a page at the socket")
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with socket.socket(socket.AF_UNIX) as one:
            one.connect(str(place))
            one.sendall(b"GET / HTTP/1.1\r\nHost: hub.example.org\r\nConnection: close\r\n\r\n")
            text = b"".join(iter(lambda: one.recv(65536), b""))
        assert text.startswith(b"HTTP/1.1 200")
    finally:
        process.terminate()
        assert process.wait(20 * SLOWNESS) == 0
    assert not place.exists()


def test_a_file_that_is_no_socket_is_left(engine, tmp_path):
    place = tmp_path / "thesis"
    place.write_text("four years")
    done = subprocess.run(
        [engine.program, "web", "--socket", str(place)],
        env=engine.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60 * SLOWNESS,
    )
    assert done.returncode == 2 and f"cannot listen on {place}" in done.stderr
    assert place.read_text() == "four years"
    place.unlink()
    with socket.socket(socket.AF_UNIX) as left:  # as by a page that was killed
        left.bind(str(place))
    with subprocess.Popen(done.args, env=engine.env, stdin=subprocess.DEVNULL) as process:
        wait_until(lambda: is_listened_at(place), what="a page at the socket")
        process.terminate()


def test_threads_that_cannot_be_had_end_no_page(engine):
    with Page(engine) as page:
        page.enter()
        most = resource.prlimit(page.process.pid, resource.RLIMIT_AS)
        with open(f"/proc/{page.process.pid}/statm") as memory:
            used = int(memory.read().split()[0]) * resource.getpagesize()
        resource.prlimit(page.process.pid, resource.RLIMIT_AS, (used, most[1]))
        # A thread whose stack has no room: as where the user has as many as he may.
        with contextlib.ExitStack() as stack:
            many = [
                stack.enter_context(socket.create_connection(("127.0.0.1", page.port), 5 * SLOWNESS)) for _ in range(20)
            ]
            refused, _, _ = select.select(many, [], [], 5 * SLOWNESS)
            # Told so, or given up by a thread that finds no memory.
            assert refused and {one.recv(100)[:12] for one in refused} <= {b"HTTP/1.1 503", b""}
        resource.prlimit(page.process.pid, resource.RLIMIT_AS, most)
        wait_until(lambda: is_served(page), what="a page when there is room again")


def test_a_browser_sees_it_all(engine):
    array = engine.submit(
        "--name", "stolen", "--items", HOSTILE, "b", "--", "sh", "-c", 'echo "$1"; exit 3', "sh", "{}"
    )
    engine.wait(array)
    held = engine.submit("--hold", "--array", "1-4", "--name", HOSTILE, "--", "true")
    with Page(engine) as page, Browser() as browser:
        browser.open(page.link)
        browser.wait_until(f"[...document.querySelectorAll('a')].some((a) => a.textContent === '{array}')")
        assert page.token not in browser.run("location.href")
        assert HOSTILE in browser.text()
        browser.run(f"location.hash = '#/task/{array}.1'")
        browser.wait_until("document.querySelector('pre').textContent.includes('script')")
        assert browser.run("document.querySelector('pre').textContent").strip() == HOSTILE
        for view, text in {
            "where": "Pilots",
            "tasks?state=failed": f"{array}.2",
            "waits": "local/",
            "efficiency": "Cpu hours asked",
            "sites": "works",
            "dropboxes": "No drop box",
            f"submission/{array}": "exit 3",
        }.items():
            browser.run(f"location.hash = '#/{view}'")
            browser.wait_until(f"document.body.innerText.includes({json.dumps(text)})")
            for width in (1400, 400):
                browser.resize(width, 900)
                assert browser.run("document.documentElement.scrollWidth") <= width, f"{view} is wider than {width}"
        browser.run(f"location.hash = '#/submission/{held}'")
        browser.wait_until("[...document.querySelectorAll('button')].some((b) => b.textContent === 'Cancel')")
        browser.run("[...document.querySelectorAll('button')].find((b) => b.textContent === 'Cancel').click()")
        browser.wait_until("document.getElementById('question').open")
        browser.run("document.getElementById('question-yes').click()")
        browser.wait_until("document.body.innerText.includes('4 cancelled')")
        # A stream that begins anew names what is there; a task that ended meanwhile is not.
        browser.run("take({ sections: { tasks: { '9.9': { id: '9.9' } } } })")
        browser.run("take({ version: 1, sections: { tasks: {} }, minutes: [] })")
        assert browser.run("known.sections.tasks.has('9.9')") is False
        # Whose counts came before its submissions is no engine without any.
        browser.run("location.hash = '#/'")
        browser.wait_until("document.querySelector('main').innerText.includes('Submissions')")
        said = (
            "(take({{ version: 1, minutes: [], engine: {{ tasks: {{ done: {} }} }} }}), show(), current.update(), {})"
        )
        text = "document.querySelector('main').innerText"
        assert "Loading" in browser.run(said.format(5, text))
        assert "Nothing was submitted yet" in browser.run(said.format(0, text))
        assert browser.run("document.title.includes('stolen') ? document.querySelector('h1').textContent : ''") == ""
        assert browser.complaints() == []
        # A command to copy is one command, whoever wrote the address.
        browser.run("location.hash = '#/tasks?array=1;touch%20x'")
        browser.wait_until("document.querySelector('code')?.textContent === \"hpcbatch list -- '1;touch x'\"")
        assert browser.hosts() == {f"127.0.0.1:{page.port}"}


def rules_of_axe():
    """The script of axe-core, which looks at a page as a screen reader and a keyboard meet it."""
    python = own_python("axe", ROOT / "tests/web/axe.txt", [], alone=True)
    (script,) = python.parents[1].glob("lib/*/site-packages/axe_playwright_python/axe.min.js")
    return script.read_text()


def test_no_view_keeps_anybody_out(engine):
    array = engine.submit("--name", "fails", "--items", "a", "b", "--", "sh", "-c", "echo said; exit 3")
    engine.wait(array)
    engine.submit("--hold", "--array", "1-4", "--", "true")
    views = {
        "": array,
        "where": "Pilots",
        "tasks": array,
        "waits": "local/",
        "efficiency": "Cpu hours asked",
        "sites": "works",
        "dropboxes": "No drop box",
        f"submission/{array}": "exit 3",
        f"task/{array}.1": "said",
    }
    rules, found = rules_of_axe(), []
    with Page(engine) as page, Browser() as browser:
        browser.open(page.link)
        browser.wait_until(f"[...document.querySelectorAll('a')].some((a) => a.textContent === '{array}')")
        browser.run(rules + "; 0")
        for width, dark in [(1400, False), (1400, True), (400, False), (400, True)]:
            browser.resize(width, 900, dark)
            for view, text in views.items():
                browser.run(f"location.hash = '#/{view}'")
                browser.wait_until(f"document.querySelector('main').innerText.includes({json.dumps(text)})")
                wrong = browser.run(
                    "axe.run(document, { resultTypes: ['violations'] }).then((all) => all.violations.map("
                    "(one) => `${one.impact} ${one.id}: ${one.help}: ${one.nodes.map((node) => node.html).join(' ')}`))"
                )
                found += [f"{view} at {width}{' dark' if dark else ''}: {one}" for one in wrong]
    assert not found, "\n".join(found)


def test_a_lost_engine_and_a_lost_page_are_said():
    with EngineAtHome() as engine, Browser() as browser:
        engine.ok("engine", "start")
        with Page(engine) as page:
            see_both_go(engine, page, browser)


def see_both_go(engine, page, browser):
    browser.open(page.link)
    browser.wait_until("document.getElementById('link')?.hidden")
    engine.kill_engine()
    browser.wait_until("document.getElementById('link')?.textContent.includes('No engine answers')")
    page.process.terminate()
    browser.wait_until("document.getElementById('link')?.textContent.includes('has lost')")
