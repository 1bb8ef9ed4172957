"""A SLURM in a network namespace of its own, whose login node is reached by ssh and by nothing else."""

import contextlib
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import tempfile

from engine_at_home import processes_with, wait_until
from slow_line import SlowLine
from slurm_site import SlurmSite
from bed import CLUSTER, Slurm

_numbers = itertools.count(1)


def _run(*words):
    done = subprocess.run(
        [str(word) for word in words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stdout}{done.stderr}"
    return done.stdout


def _free_pair():
    """Two addresses of a /30 in 10.213.0.0/16 that no run beside this one has on a device here."""
    taken = _run("ip", "-4", "-o", "address")
    while True:
        block = random.randrange(16384) * 4
        pair = [f"10.213.{block // 256}.{block % 256 + end}" for end in (1, 2)]
        if f" {pair[0]}/30 " not in taken:
            return pair


class FarCluster(Slurm):
    """Outside, only the address `host` leads there; inside, nothing leads out."""

    def __enter__(self):
        number = next(_numbers)
        self.namespace = f"hbfar{os.getpid()}x{number}"
        # A device has 15 letters at most.
        self.outside, self.inside = (f"hbf{os.getpid() % 10**7:x}x{number:x}{end}" for end in "ab")
        self.gate, self.host = _free_pair()
        self._sshd = None
        _run("ip", "netns", "add", self.namespace)
        try:
            self.lay_line()
            _run("ip", "address", "add", f"{self.gate}/30", "dev", self.outside)
            _run("ip", "link", "set", self.outside, "up")
            self.within("ip", "address", "add", f"{self.host}/30", "dev", self.inside)
            self.within("ip", "link", "set", self.inside, "up")
            self.within("ip", "link", "set", "lo", "up")
            super().__enter__()
            self.keys = pathlib.Path(tempfile.mkdtemp(prefix="hb-keys-", dir="/tmp"))
            for name in ("host", "user"):
                _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.keys / name)
            (self.keys / "ssh_config").touch()
            self.write_known_hosts()
            self.start_sshd()
        except BaseException:
            self.take_line_away()
            _run("ip", "netns", "del", self.namespace)
            raise
        return self

    def __exit__(self, *_):
        self.stop_sshd()
        super().__exit__()
        shutil.rmtree(self.keys)
        self.take_line_away()
        _run("ip", "netns", "del", self.namespace)

    def lay_line(self):
        """Makes the devices `outside`, here, and `inside`, in the namespace."""
        _run("ip", "link", "add", self.outside, "type", "veth", "peer", "name", self.inside, "netns", self.namespace)

    def take_line_away(self):
        """With the namespace it goes by itself."""

    def within(self, *words):
        # Not `ip netns exec`, which puts another /sys there, without control groups.
        return _run(*self._enter(), *words)

    def _enter(self):
        return ["nsenter", f"--net=/run/netns/{self.namespace}"]

    def cluster(self, verb, *arguments):
        return self.within(CLUSTER, verb, self.dir, *arguments)

    def ask(self, *argv, **_):
        return self.within("env", f"SLURM_CONF={self.conf}", *argv)

    # --- the login node -----------------------------------------------------------------------------------------------

    def write_known_hosts(self):
        kind, key, *_ = (self.keys / "host.pub").read_text().split()
        (self.keys / "known_hosts").write_text(f"{self.host} {kind} {key}\n")

    def start_sshd(self):
        os.makedirs("/run/sshd", exist_ok=True)
        shutil.copy(self.keys / "user.pub", self.keys / "authorized_keys")
        (self.keys / "sshd_config").write_text(
            "\n".join(
                [
                    f"ListenAddress {self.host}",
                    f"HostKey {self.keys}/host",
                    f"AuthorizedKeysFile {self.keys}/authorized_keys",
                    "PidFile none",
                    "UsePAM no",
                    "StrictModes no",
                    "PermitRootLogin prohibit-password",
                    "PasswordAuthentication no",
                    "MaxSessions 4",
                    "",
                ]
            )
        )
        with open(self.keys / "sshd.log", "a") as log:
            self._sshd = subprocess.Popen(
                [*self._enter(), "/usr/sbin/sshd", "-D", "-e", "-f", self.keys / "sshd_config"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until(lambda: "Server listening" in (self.keys / "sshd.log").read_text(), 20, "sshd to listen")

    def stop_sshd(self):
        """With all its connections."""
        if self._sshd is None:
            return
        for pid in self.connections():
            with contextlib.suppress(ProcessLookupError):  # it ended meanwhile
                os.kill(pid, signal.SIGKILL)
        self._sshd.kill()
        self._sshd.wait(20)
        self._sshd = None
        (self.keys / "sshd.log").write_text("")

    def connections(self):
        """The processes of sshd that serve one login each."""
        found = []
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                stat = pathlib.Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
                if int(stat[1]) == self._sshd.pid:
                    found.append(int(name))
            except OSError:
                pass
        return found

    @contextlib.contextmanager
    def cut(self):
        """No packet goes either way."""
        _run("ip", "link", "set", self.outside, "down")
        try:
            yield
        finally:
            _run("ip", "link", "set", self.outside, "up")

    def transport(self, plugin="ssh", **keys):
        said = {
            "plugin": plugin,
            "host": self.host,
            "user": "root",
            "identity": str(self.keys / "user"),
            "environment": {"SLURM_CONF": self.conf},
        }
        if plugin == "ssh":
            said |= {"known_hosts": str(self.keys / "known_hosts"), "agent": False}
        else:
            said |= {
                "options": [f"UserKnownHostsFile={self.keys}/known_hosts", "GlobalKnownHostsFile=/dev/null"],
                "config": str(self.keys / "ssh_config"),
            }
        return said | keys


class DistantCluster(FarCluster):
    """The same at the other end of the world; `line` can do more harm."""

    ROUND_TRIP = 0.3
    line = None

    def lay_line(self):
        self.line = SlowLine(self.outside, self.inside, self.ROUND_TRIP)
        # What is sent in one burst is not to be lost already here.
        for device in self.outside, self.inside:
            _run("ip", "link", "set", device, "txqueuelen", "10000")
        _run("ip", "link", "set", self.inside, "netns", self.namespace)

    def take_line_away(self):
        if self.line is not None:
            self.line.close()


class FarSite(SlurmSite):
    """An engine out here and a site in there."""

    def __init__(self, cluster, *shapes, plugin="ssh", **keys):
        super().__init__(cluster, *shapes, **{"transport": cluster.transport(plugin), "interface": "127.0.0.1"} | keys)

    def relays(self):
        return [
            pid
            for pid, line in processes_with(str(self.directory)).items()
            if " relay " in line and "ssh" not in line.split()[0]
        ]
