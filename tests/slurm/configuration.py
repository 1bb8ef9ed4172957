"""What the daemons of a cluster are told: slurm.conf and the files beside it."""

import os
import random
import socket
import stat
import sys


class Trouble(Exception):
    """What could not be done, in words for the caller."""


def own_address():
    """Where SLURM's daemons will listen: when told not to listen everywhere, they take the address of the host's name."""
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        raise Trouble(
            f"the name of this host, {name}, has no address: add the line `127.0.1.1 {name}` to /etc/hosts"
        ) from None
    if not address.startswith("127."):
        print(f"cluster: {name} is {address}, so this SLURM listens there and not on loopback", file=sys.stderr)
    return address


def free_ports(count):
    """Ports that nobody uses, from below those that the kernel gives to outgoing connections."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as f:
        top = int(f.read().split()[0])
    candidates = random.sample(range(10000, top if top > 12000 else 32000), 2000)
    ports = []
    for port in candidates:
        with socket.socket() as s:
            try:
                s.bind(("0.0.0.0", port))
            except OSError:
                continue
        ports.append(port)
        if len(ports) == count:
            return ports
    raise Trouble("there are no free ports on this machine")


def write(directory, nodes, args):
    """Writes the configuration, the munge key and the GPUs' device files of a cluster of `nodes` into `directory`."""

    def path(*parts):
        return os.path.join(directory, *parts)

    ports = free_ports(2 + len(nodes))
    fd = os.open(path("munge/key"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    os.write(fd, os.urandom(128))
    os.close(fd)
    host = socket.gethostname().split(".")[0]
    address = own_address()
    munge = path("munge/socket")
    cpu_nodes = nodes[: (len(nodes) + 1) // 2]
    gpu_nodes = nodes[len(cpu_nodes) :]
    kinds = [(kind, int(count)) for kind, count in (said.split(":") for said in args.gpus.split(","))]
    settings = {
        "ClusterName": "hpcbatch",
        "SlurmctldHost": f"{host}({address})",
        "SlurmctldPort": ports[0],
        "SlurmUser": "root",
        "SlurmdUser": "root",
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={munge}",
        "CredType": "cred/munge",
        "CommunicationParameters": "NoCtldInAddrAny,NoInAddrAny",
        "StateSaveLocation": path("state"),
        "SlurmdSpoolDir": path("spool/%n"),
        "SlurmctldPidFile": path("run/slurmctld.pid"),
        "SlurmdPidFile": path("run/slurmd-%n.pid"),
        "SlurmctldLogFile": path("log/slurmctld.log"),
        "SlurmdLogFile": path("log/slurmd-%n.log"),
        "SlurmdParameters": "config_overrides",
        "ProctrackType": "proctrack/linuxproc",
        "TaskPlugin": "task/none",
        "JobAcctGatherType": "jobacct_gather/none",
        "MpiDefault": "none",
        "MailProg": "/bin/true",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_Core_Memory",
        "DefMemPerCPU": 500,
        "ReturnToService": 2,
        "SlurmdTimeout": 20,
        "SlurmctldTimeout": 20,
        "MessageTimeout": 10,
        "KillWait": 3,
        "GresTypes": "gpu",
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": "batch_sched_delay=0,sched_min_interval=0,sched_interval=1,defer_batch,bf_interval=1",
    }
    if not args.fast:
        settings |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": address,
            "AccountingStoragePort": ports[1],
            "AccountingStoragePass": munge,
            "AccountingStorageTRES": "gres/gpu",
        }
    for setting in args.set:
        key, equals, value = setting.partition("=")
        if not equals:
            raise Trouble(f"--set {setting}: expected KEY=VALUE, a line of slurm.conf")
        settings[next((k for k in settings if k.lower() == key.lower()), key)] = value
    lines = [f"{key}={value}" for key, value in settings.items()]
    gres = []
    for i, node in enumerate(nodes):
        line = (
            f"NodeName={node} NodeHostname={host} NodeAddr={address} Port={ports[2 + i]} CPUs={args.cpus} "
            f"RealMemory={args.memory} State=UNKNOWN"
        )
        if node in gpu_nodes:
            kind, count = kinds[gpu_nodes.index(node) % len(kinds)]
            for device in range(count):
                os.mknod(path("dev", f"{node}-{kind}-{device}"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
            devices = path("dev", f"{node}-{kind}-" + ("0" if count == 1 else f"[0-{count - 1}]"))
            gres.append(f"NodeName={node} Name=gpu Type={kind} File={devices}")
            line += f" Gres=gpu:{kind}:{count}"
        lines.append(line)
    lines.append(f"PartitionName=cpu Nodes={','.join(cpu_nodes)} Default=YES DefaultTime=60 MaxTime=1440 State=UP")
    if gpu_nodes:
        lines.append(f"PartitionName=gpu Nodes={','.join(gpu_nodes)} DefaultTime=60 MaxTime=1440 State=UP")
    dbd = [
        f"AuthType=auth/munge\nAuthInfo=socket={munge}\nDbdHost=localhost\nDbdAddr={address}\nDbdPort={ports[1]}",
        "CommunicationParameters=NoInAddrAny",
        "SlurmUser=root\nStorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser=root",
        f"LogFile={path('log/slurmdbd.log')}\nPidFile={path('run/slurmdbd.pid')}",
    ]
    for name, mode, text in (
        ("slurm.conf", 0o644, lines),
        ("gres.conf", 0o644, gres),
        ("slurmdbd.conf", 0o600, dbd),
        ("cgroup.conf", 0o644, ["CgroupAutomount=no"]),
    ):
        with open(path("etc", name), "w") as f:
            f.write("\n".join(text) + "\n")
        os.chmod(path("etc", name), mode)
