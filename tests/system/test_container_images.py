"""Images that have to be brought to a runtime: OCI layouts, archives, and those of a registry that is a few lines of this test."""

import collections
import http.server
import json
import re
import tarfile
import threading
import pathlib

import pytest
from container_images import EngineWithContainers, folder, make_layout, make_tree, needs_containers

RUNTIMES = ("podman", "charliecloud")
NODES = ("one", "two", "three")

pytestmark = needs_containers("podman", "charliecloud", "skopeo")


@pytest.fixture(scope="module")
def layout(folder):
    return make_layout(make_tree(folder / "tree"), folder / "layout")


class Registry(http.server.ThreadingHTTPServer):
    """Serves the layout as NAME:latest. `asked` counts; `busy` many requests for the manifest are turned away, with `code`."""

    def __init__(self, layout):
        super().__init__(("127.0.0.1", 0), Answer)
        self.layout, self.asked, self.busy, self.code = layout, collections.Counter(), 0, 503
        index = json.loads((layout / "index.json").read_text())
        self.manifest = index["manifests"][0]["digest"]
        self.place = f"127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        found = re.fullmatch(r"/v2/tool/(manifests|blobs)/(.+)", self.path)
        if self.path == "/v2/":
            return self.say(200, b"{}", "application/json")
        if not found:
            return self.say(
                404,
                b'{"errors": [{"code": "NAME_UNKNOWN", "message": "repository name not known to registry"}]}',
                "application/json",
            )
        kind, name = found.groups()
        if self.command == "GET":
            server.asked[kind] += 1
        if kind == "manifests":
            if server.busy > 0:
                server.busy -= 1
                return self.say(server.code, b"busy", "text/plain")
            if name not in ("latest", server.manifest):
                return self.say(
                    404,
                    b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}',
                    "application/json",
                )
            name = server.manifest
        content = (server.layout / "blobs/sha256" / name.removeprefix("sha256:")).read_bytes()
        self.say(
            200,
            content,
            "application/vnd.oci.image.manifest.v1+json" if kind == "manifests" else "application/octet-stream",
            name,
        )
        return None

    do_HEAD = do_GET

    def say(self, code, content, kind, digest=None):
        self.send_response(code)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_):
        pass


@pytest.fixture
def registry(layout):
    with Registry(layout) as server:
        yield server
        server.shutdown()


@pytest.fixture(params=RUNTIMES)
def engine(request):
    """With a pilot for each of the tags."""
    with EngineWithContainers(
        request.param, ", ".join(f"{{name: {n}, cpus: 1, memory: 1G, tags: [{n}]}}" for n in NODES)
    ) as engine:
        trusting = engine.directory / "registries.conf"
        engine.env["CONTAINERS_REGISTRIES_CONF"] = str(trusting)
        yield engine


def trust(engine, registry):
    pathlib.Path(engine.env["CONTAINERS_REGISTRIES_CONF"]).write_text(
        f'[[registry]]\nlocation = "{registry.place}"\ninsecure = true\n'
    )
    return f"docker://{registry.place}/tool:latest"


def kept(engine):
    """What the site keeps, without what is about it."""
    return sorted(path.name for path in engine.home.glob("**/images/*") if not path.name.endswith((".used", ".lock")))


def test_a_layout_with_its_variables(engine, layout):
    for image in (layout, f"oci:{layout}:latest"):
        result = engine.verb("run", "--container", image, "--", "sh", "-c", "cat /etc/mark; echo $OF_THE_IMAGE; exit 5")
        assert result == (5, "in the image\nyes\n", "")
    task = engine.submit("--container", f"oci:{layout}:other", "--", "true")
    assert engine.wait(task) == 1
    assert engine.show(task)["failure"] == "container_missing", engine.show(task)


def test_an_archive(layout, folder):
    archive = folder / "image.tar"
    with tarfile.open(archive, "w") as packed:
        for path in layout.iterdir():
            packed.add(path, arcname=path.name)
    with EngineWithContainers("podman") as engine:
        assert engine.verb("run", "--container", f"oci-archive:{archive}", "--", "cat", "/etc/mark") == (
            0,
            "in the image\n",
            "",
        )


def test_an_entrypoint_is_kept_where_that_is_asked_for(layout):
    with EngineWithContainers("podman charliecloud") as engine:
        file = engine.directory / "tasks.yaml"
        file.write_text(
            json.dumps([{"command": ["and", "arguments"], "container": {"image": str(layout), "entrypoint": "keep"}}])
        )
        task = engine.ok("submit", "--file", file).split()[0]
        assert engine.wait(task) == 0, engine.show(task)
        assert engine.ok("log", task) == "the entrypoint and arguments\n"
        file.write_text(
            json.dumps(
                [
                    {
                        "command": ["true"],
                        "container": {"image": str(layout), "entrypoint": "keep", "runtime": "charliecloud"},
                    }
                ]
            )
        )
        task = engine.ok("submit", "--file", file).split()[0]
        assert engine.wait(task) == 1
        assert "charliecloud knows no entrypoints" in engine.show(task)["message"]


def test_an_image_of_a_registry_is_pulled_once_for_all_pilots(engine, registry):
    image = trust(engine, registry)
    tasks = [
        engine.submit("--tag", node, "--array", "1-5", "--container", image, "--", "cat", "/etc/mark") for node in NODES
    ]
    assert engine.wait(*tasks) == 0, engine.json("explain", *tasks)
    assert len(engine.json("pilots")) == len(NODES)
    assert registry.asked["blobs"] == 2, registry.asked
    assert len(kept(engine)) == 1, kept(engine)


def test_a_busy_registry_is_tried_again(engine, registry):
    image = trust(engine, registry)
    registry.busy, registry.code = 1, 503
    assert engine.verb("run", "--container", image, "--", "cat", "/etc/mark") == (0, "in the image\n", "")
    assert registry.busy == 0


def test_what_a_registry_has_not_is_missing_and_nothing_runs(engine, registry, folder):
    trust(engine, registry)
    mark = folder / f"ran-{engine.runtime}"
    for image in (f"{registry.place}/tool:never", f"docker://{registry.place}/other"):
        task = engine.submit("--container", image, "--", "touch", mark)
        assert engine.wait(task) == 1
        shown = engine.show(task)
        assert shown["failure"] == "container_missing", shown
        assert "cannot pull the image" in shown["message"]
    assert not mark.exists()
    assert kept(engine) == []
