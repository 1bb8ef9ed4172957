"""Nobody but the owner reads, lists, reaches or changes anything of an engine and its sites; who knocks without a key is rejected."""

import json
import os
import pathlib
import shutil

import pytest
from engine_at_home import EngineAtHome, processes_with, wait_until
from far_cluster import FarCluster, FarSite
from second_user import everything_below, keys_below, let_do, read_by_second_user, send_as_second_user
from slurm_site import SMALL, SlurmSite

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may take another user's number")

FOUR_GIGABYTES = b"\xff\xff\xff\xff"


class OpenHome(EngineAtHome):
    """All above the engine's home and the workspaces may be entered by everybody, as /home and /scratch may; the
    workspaces were made by their owner, who let others look in."""

    def __init__(self, *sites):
        super().__init__()
        self.directory.chmod(0o755)
        self.scratch = self.directory / "scratch"
        self.scratch.mkdir()
        self.scratch.chmod(0o1777)
        self.pilots_of_this_machine = self.directory / "local"
        self.workspaces = [self.directory / f"space-{site['name']}" for site in sites]
        for workspace in self.workspaces:
            workspace.mkdir(mode=0o755)
        self.configure(
            json.dumps(
                {
                    "sites": [
                        {
                            "scheduler": {"plugin": "local", "directory": str(self.pilots_of_this_machine)},
                            "transport": "shared_fs",
                            "workspace": str(workspace),
                            "scratch": str(self.scratch),
                            "idle_after": "1s",
                            "shapes": [{"name": "one", "cpus": 2, "memory": "1G"}],
                        }
                        | site
                        for site, workspace in zip(sites, self.workspaces)
                    ]
                }
            )
        )

    def relay_pids(self):
        return [pid for pid, line in processes_with(str(self.directory)).items() if " relay " in line]


def waiting_task(engine, *words):
    """One that has said something and runs until the file `go` is there."""
    return engine.submit(
        *words, "--", "sh", "-c", f"echo said; echo more >&2; while [ ! -e {engine.directory}/go ]; do sleep 0.1; done"
    )


def must_be_closed(roots, may_be_listed=()):
    """The second user is let do nothing; `may_be_listed`: folders that their owner made so. Returns the paths that were tried."""
    paths = everything_below(*roots)
    let = [line for line in let_do(paths) if line[0] not in map(str, may_be_listed) or line[1] != "list"]
    assert not let, f"the second user was let do this: {let}"
    return [path for path, _ in paths]


def must_be_closed_by_themselves(paths):
    """Not only by the folder above them, which is one slip away."""
    modes = {path: oct(os.lstat(path).st_mode) for path in paths if os.path.lexists(path)}
    assert not (loose := {path: mode for path, mode in modes.items() if int(mode, 8) & 0o077}), loose


def must_be_told_nowhere(keys, *files):
    """No command line and no environment on this machine has a key, nor have these files."""
    assert keys
    processes = [
        f"/proc/{pid}/{what}" for pid in filter(str.isdigit, os.listdir("/proc")) for what in ("cmdline", "environ")
    ]
    for file in [*files, *processes]:
        try:
            text = pathlib.Path(file).read_bytes()
        except OSError:
            assert file in processes
            continue
        assert not any(key in text for key in keys), f"{file} tells a key"


def must_not_be_looked_into(pids):
    assert read_by_second_user(
        f"/proc/{pid}/cmdline" for pid in pids
    ), "these are everybody's: else what follows shows nothing"
    assert not read_by_second_user(
        f"/proc/{pid}/{what}" for pid in pids for what in ("environ", "maps", "fd/0", "fd/1")
    )


@pytest.mark.parametrize("umask", [0o000, 0o022], ids=["umask000", "umask022"])
def test_files_folders_and_sockets_are_the_owners_alone(umask):
    relay = {"name": "relay", "link": "relay", "relay_interface": "127.0.0.1"}
    # What a batch system or a login makes of the umask is not the owner's either.
    spool = {"name": "spool", "link": "spool", "setup": ["umask 000"]}
    with OpenHome(relay, spool) as engine:
        state, runtime, box = (engine.directory / name for name in ("state", "run", "box"))
        for folder in (state, runtime, box):
            folder.mkdir(mode=0o755)
        del engine.env["HPCBATCH_HOME"]
        engine.env |= {"XDG_STATE_HOME": str(state), "XDG_RUNTIME_DIR": str(runtime)}
        engine.home = state / "hpcbatch"
        before = os.umask(umask)
        try:
            engine.ok("engine", "start")
            tasks = [waiting_task(engine, "--site", name) for name in ("relay", "spool")]
            engine.ok("dropbox", box)
        finally:
            os.umask(before)
        wait_until(lambda: all(engine.show(task)["state"] == "running" for task in tasks), 60, "both tasks' run")
        assert sorted(pilot["link"].split()[0] for pilot in engine.json("pilots")) == ["relay", "spool"]
        wait_until(lambda: all(any(space.glob("logs/*")) for space in engine.workspaces), 60, "the logs")

        roots = [engine.home, runtime / "hpcbatch", engine.pilots_of_this_machine, *engine.workspaces]
        tried = must_be_closed(roots, engine.workspaces)
        scratch = [path for path in everything_below(engine.scratch)[1:]]
        assert scratch and not let_do(scratch), "what pilots have on their node"
        relative = {os.path.relpath(path, engine.directory) for path in tried}
        assert relative >= {
            "state/hpcbatch/" + name
            for name in ("store.db", "store.db-wal", "engine.log", "engine.lock", "dropboxes.json", "pilots")
        } | {"run/hpcbatch/socket", "space-relay/relay", "space-spool/outbox"}
        for folder in ("bin", "allocations", "logs", "spool"):
            assert any(name.startswith(f"space-spool/{folder}/") for name in relative), folder
        must_be_closed_by_themselves(
            path for path in tried if pathlib.Path(path) not in engine.workspaces and "/work/" not in path
        )

        keys = keys_below(*engine.workspaces)
        must_be_told_nowhere(
            keys,
            engine.home / "engine.log",
            *(file for space in engine.workspaces for file in space.glob("allocations/*.sh")),
        )
        must_not_be_looked_into([engine.engine_pid(), *engine.pilot_pids(), *engine.relay_pids()])
        (engine.directory / "go").touch()
        assert engine.wait(*tasks) == 0


def recording(folder, file, *programs):
    """A folder with programs of these names, which first write down what /proc shows of them to everybody and to their owner."""
    folder.mkdir()
    for name in programs:
        program = folder / name
        program.write_text(
            f'#!/bin/sh\ncat /proc/$$/cmdline /proc/$$/environ >> {file}\nexec {shutil.which(name)} "$@"\n'
        )
        program.chmod(0o755)
    return folder


def test_submit_commands_tell_no_key(slurm):
    with SlurmSite(slurm) as probe:  # for its directory: the configuration names it
        told = probe.directory / "told"
        folder = recording(probe.directory / "programs", told, "sbatch", "squeue", "scancel", "sinfo", "scontrol")
        environment = {"SLURM_CONF": slurm.conf, "PATH": f"{folder}:{os.environ['PATH']}"}
        configuration = json.loads((probe.directory / "config.yaml").read_text())
        configuration["sites"][0]["transport"]["environment"] = environment
        probe.configure(json.dumps(configuration))
        task = waiting_task(probe)
        wait_until(lambda: probe.show(task)["state"] == "running", 60, "the task's run")
        keys = keys_below(probe.directory / "w")
        assert b"sbatch" in told.read_bytes()
        must_be_told_nowhere(keys, told, *(probe.directory / "w").glob("allocations/*.sh"))
        shown = slurm.ask("scontrol", "show", "job") + slurm.ask(
            "scontrol", "write", "batch_script", probe.living_jobs()[0].number, "-"
        )
        assert not any(key in shown.encode() for key in keys)
        probe.directory.chmod(0o755)
        must_be_closed([probe.home, probe.directory / "w"])
        (probe.directory / "go").touch()
        assert probe.wait(task) == 0


@pytest.fixture(scope="module")
def far():
    with FarCluster("--fast") as cluster:
        yield cluster


@pytest.mark.parametrize("plugin", ["ssh", "openssh"])
def test_a_site_behind_a_login_is_closed_too(far, plugin):
    with FarSite(far, SMALL, plugin=plugin, link="relay") as site:
        control = pathlib.Path(f"/tmp/hpcbatch-ssh-{os.getuid()}")
        space = site.directory / "w"
        site.directory.chmod(0o755)
        space.mkdir(mode=0o755)
        before = os.umask(0)
        try:
            task = waiting_task(site)
        finally:
            os.umask(before)
        wait_until(lambda: site.show(task)["state"] == "running", 240, "the task's run")
        wait_until(lambda: any(space.glob("logs/*")), 60, "the log")
        roots = [site.home, space] + [control] * (plugin == "openssh")
        tried = must_be_closed(roots, [space])
        assert plugin == "ssh" or any(path.startswith(f"{control}/") for path in tried)
        must_be_closed_by_themselves(path for path in tried if path != str(space) and "/work/" not in path)
        must_be_told_nowhere(keys_below(space), site.home / "engine.log")
        (site.directory / "go").touch()
        assert site.wait(task) == 0


# --- who is rejected -----------------------------------------------------------------------------------------------


def rejected_peers(engine):
    """Those that are not zero."""
    return {reason: count for reason, count in engine.status()["rejected_peers"].items() if count}


def told(engine, reason):
    return (engine.home / "engine.log").read_text().count(f"rejected ({reason})")


@pytest.mark.parametrize("way", ["unix", "direct", "relay", "spool"])
def test_a_pilot_with_a_wrong_key_is_counted(way):
    another = "sed -i 's/^key ......../key 00000000/' $hb_name.pilot"
    with OpenHome(
        {"name": "good", "link": "unix"},
        {"name": "bad", "link": way, "interface": "127.0.0.1", "relay_interface": "127.0.0.1", "setup": [another]},
    ) as engine:
        engine.ok("engine", "start")
        assert rejected_peers(engine) == {} and "rejected (" not in engine.ok("engine", "status")
        stays = waiting_task(engine, "--site", "good")
        wait_until(lambda: engine.show(stays)["state"] == "running", 60, "the good pilot's task")
        waits = engine.submit("--site", "bad", "--", "true")
        wait_until(lambda: rejected_peers(engine).get("wrong_key"), 120, "the count")
        assert rejected_peers(engine).keys() == {"wrong_key"}
        assert "wrong key" in engine.ok("engine", "status")
        assert told(engine, "wrong_key") == 1
        assert engine.ok("run", "--site", "good", "--", "echo", "goes on").strip() == "goes on"
        assert engine.show(waits)["state"] == "waiting"
        engine.ok("cancel", waits)
        (engine.directory / "go").touch()
        assert engine.wait(stays) == 0


@pytest.mark.parametrize("way", ["direct", "relay"])
def test_a_second_user_at_a_port_is_counted(way):
    with OpenHome({"name": "site", "link": way, "interface": "127.0.0.1", "relay_interface": "127.0.0.1"}) as engine:
        engine.ok("engine", "start")
        task = waiting_task(engine)
        wait_until(lambda: engine.show(task)["state"] == "running", 60, "the task's run")
        ports = engine.home / "ports" if way == "direct" else engine.workspaces[0] / "relay"
        port = int(ports.read_text().split()[-1])
        assert send_as_second_user(port, b"GET / HTTP/1.1\r\n\r\n") == b"", "who knocks learns nothing"
        assert send_as_second_user(port, FOUR_GIGABYTES) == b""
        wait_until(lambda: rejected_peers(engine) == {"wrong_hello": 2}, 60, "the count")
        assert told(engine, "wrong_hello") == 1
        hello = b"hpcbatch" + b"\1\0\1\0" + b"hnobody".ljust(16, b"\0") + bytes(4) + os.urandom(32)
        answer = send_as_second_user(port, hello, bytes(24) + FOUR_GIGABYTES)
        assert len(answer) == 48 and answer.startswith(b"hpcbatch"), "as for a pilot"
        wait_until(lambda: rejected_peers(engine) == {"wrong_hello": 2, "too_long": 1}, 60, "the count")
        (engine.directory / "go").touch()
        assert engine.wait(task) == 0
