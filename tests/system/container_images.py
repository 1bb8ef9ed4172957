"""Images for tests of containers, made of this machine's own programs: nothing is downloaded."""

import functools
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time

import pytest
from engine_at_home import EngineAtHome

UNIFIED = pathlib.Path("/sys/fs/cgroup/unified")
PROGRAMS = (
    "sh",
    "cat",
    "echo",
    "id",
    "sleep",
    "env",
    "pwd",
    "stat",
    "touch",
    "head",
    "tail",
    "ls",
    "nproc",
    "wc",
    "dd",
    "kill",
    "readlink",
    "mkdir",
    "rm",
)
FOLDERS = ("bin", "dev", "etc", "home", "mnt", "proc", "root", "sys", "tmp", "usr", "var/tmp")


@pytest.fixture(scope="module")
def folder():
    # Podman makes a name of a layout's path, in which it takes no '_' behind a '-'.
    path = pathlib.Path(f"/var/tmp/hb-images-{os.getpid()}-{time.monotonic_ns()}")
    path.mkdir()
    yield path
    shutil.rmtree(path)


def make_tree(folder):
    """A folder with the root file system of a small system; /etc/mark says which."""
    tree = pathlib.Path(folder)
    for name in FOLDERS:
        (tree / name).mkdir(parents=True)
    libraries = set()
    for name in PROGRAMS:
        program = pathlib.Path(shutil.which(name, path="/bin:/usr/bin")).resolve()
        shutil.copy(program, tree / "bin" / name)
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        libraries |= set(re.findall(r"(/[^ ]+) \(", listed))
    for library in libraries:
        place = tree / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(os.path.realpath(library), place)
    (tree / "etc/passwd").write_text("root:x:0:0:root:/root:/bin/sh\n")
    (tree / "etc/group").write_text("root:x:0:\n")
    (tree / "etc/mark").write_text("in the image\n")
    return tree


def _blob(layout, content):
    digest = hashlib.sha256(content).hexdigest()
    (layout / "blobs/sha256").mkdir(parents=True, exist_ok=True)
    (layout / "blobs/sha256" / digest).write_bytes(content)
    return {"digest": f"sha256:{digest}", "size": len(content)}


def make_layout(tree, folder):
    """The tree as an OCI layout of one layer, with a variable and an entrypoint of its own."""
    layout = pathlib.Path(folder)
    layout.mkdir()
    packed = layout / "layer.tar"
    with tarfile.open(packed, "w") as archive:
        for name in sorted(os.listdir(tree)):
            archive.add(pathlib.Path(tree) / name, arcname=name)
    layer = _blob(layout, packed.read_bytes())
    packed.unlink()
    config = _blob(
        layout,
        json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]},
                "config": {
                    "Env": ["PATH=/usr/bin:/bin", "OF_THE_IMAGE=yes"],
                    "Entrypoint": ["/bin/echo", "the entrypoint"],
                    "User": "4242",
                },
            }
        ).encode(),
    )
    manifest = _blob(
        layout,
        json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **config},
                "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **layer}],
            }
        ).encode(),
    )
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_text(
        json.dumps(
            {
                "schemaVersion": 2,
                "manifests": [
                    {
                        "mediaType": "application/vnd.oci.image.manifest.v1+json",
                        **manifest,
                        "annotations": {"org.opencontainers.image.ref.name": "latest"},
                    }
                ],
            }
        )
    )
    return layout


def needs_containers(*runtimes):
    """A mark: there is no test of a runtime on a machine whose kernel or sandbox lets it run nothing at all, as it says itself."""
    words = [words for words in map(_refusal, runtimes) if words]
    return pytest.mark.skipif(bool(words), reason="; ".join(words))


@functools.lru_cache(maxsize=None)
def _refusal(runtime):
    """Asked by the words that are the runtime's alone, with nothing of ours between; empty: it runs containers."""
    program = {"podman": "podman", "charliecloud": "ch-run", "skopeo": "skopeo"}[runtime]
    if not shutil.which(program):
        return f"{program} is not installed"
    if runtime == "skopeo":
        return ""
    with tempfile.TemporaryDirectory(prefix="hb-probe-", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        tree = make_tree(f"{folder}/tree")
        inside = ["sh", "-c", "exit 7"]
        command = {
            "podman": [
                "podman",
                "--storage-driver",
                "vfs",
                "--root",
                f"{folder}/root",
                "--runroot",
                f"{folder}/run",
                "run",
                "--rm",
                "--network",
                "none",
                "--cgroups",
                "disabled",
                "--ulimit",
                "nofile=1024:1024",
                "--ulimit",
                "nproc=1024:1024",
                "--rootfs",
                tree,
                *inside,
            ],
            "charliecloud": ["ch-run", tree, "--", *inside],
        }[runtime]
        hidden = f"umount {UNIFIED} && " if os.geteuid() == 0 and UNIFIED.exists() else ""
        if os.geteuid() == 0:
            command = ["unshare", "-m", "sh", "-c", f'{hidden}exec "$@"', "-", *command]
        done = subprocess.run(
            list(map(str, command)),
            env=os.environ | {"USER": "tester"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
        )
        return (
            "" if done.returncode == 7 else f"{program} runs no container on this machine: {done.stderr.strip()[-300:]}"
        )


class EngineWithContainers(EngineAtHome):
    """With one runtime by the site's rule, whose Podman keeps what it has in a folder of this home. With the mixture of control groups
    that some virtual machines have, crun refuses to work: it is shown the older half alone."""

    def __init__(self, runtime, shapes="{name: all, cpus: 4, memory: 4G}", setup=(), user=0, **options):
        super().__init__(user=user, **options)
        self.runtime = runtime
        storage = self.directory / "storage.conf"
        storage.write_text(
            f'[storage]\ndriver = "vfs"\nrunroot = "{self.directory}/podman-run"\ngraphroot = "{self.directory}/podman"\n'
        )
        runtime_folder = self.directory / "run"
        runtime_folder.mkdir(mode=0o700)
        os.chown(runtime_folder, user, user)
        self.env |= {"CONTAINERS_STORAGE_CONF": str(storage), "XDG_RUNTIME_DIR": str(runtime_folder)}
        self.rights = {}
        lines = [f"export HPCBATCH_CONTAINERS='{runtime}'", *setup]
        self.configure(
            f"sites: [{{name: here, scheduler: local, max_running: 4, setup: {json.dumps(lines)}, shapes: [{shapes}]}}]\n"
        )
        if os.geteuid() == 0:
            wrapper = self.directory / "hpcbatch"
            become = f"setpriv --reuid {user} --regid {user} --clear-groups " if user else ""
            hidden = f"umount {UNIFIED} && " if UNIFIED.exists() else ""
            wrapper.write_text(
                f'#!/bin/sh\nexec unshare -m sh -c \'{hidden}exec {become}"$@"\' - {self.program} "$@"\n'
            )
            wrapper.chmod(0o755)
            self.program = str(wrapper)
