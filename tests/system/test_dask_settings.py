"""What a cluster's workers are made by: the call, then dask's jobqueue.yaml, as dask-jobqueue reads them."""

from python_users import python, script  # noqa: F401 (python is a fixture)

BEGIN = """
    import warnings, dask
    from hpcbatch.dask import _settings, _shared_out

    def told(given, config=None, name=None):
        dask.config.set({"jobqueue": config or {}})
        try:
            found, unused = _settings(given, name)
            cores, memory, processes, _ = _shared_out(found["cores"], found["memory"], found["processes"])
            print(cores, memory, processes, found["walltime"], found["interface"], unused)
        except (ValueError, TypeError) as error:
            print(type(error).__name__, error)

"""


CASES = [
    ("{'cores': 36, 'memory': '36GB'}", "36 36000000000 6 01:00:00 None []"),
    ("{'cores': 4, 'memory': '4GB'}", "4 4000000000 4 01:00:00 None []"),
    ("{'cores': 4, 'memory': '4GB', 'processes': 1}", "4 4000000000 1 01:00:00 None []"),
    ("{'cores': 4}", "ValueError say how many cores and how much memory"),
    ("{'cores': 4, 'memory': '4GB', 'cpus': 3}", "TypeError Cluster has no argument 'cpus'"),
    ("{'cores': 4, 'memory': '4GB', 'processes': 5}", "ValueError 5 processes cannot share 4 cores"),
    (
        "{'cores': 2}, {'slurm': {'memory': '4GB', 'cores': 8, 'interface': 'ib0', 'walltime': '00:30:00', 'queue': 'long'}}",
        "2 4000000000 2 00:30:00 ib0 ['jobqueue.slurm.queue']",
    ),
    ("{}, {'slurm': {'cores': 1, 'memory': '1GB'}, 'pbs': {}}", "ValueError dask's configuration has jobqueue.pbs"),
    ("{}, {'slurm': {'cores': 1, 'memory': '1GB'}, 'pbs': {}}, 'slurm'", "1 1000000000 1 01:00:00 None []"),
    ("{}, {'slurm': {}}, 'pbs'", "ValueError config_name='pbs'"),
    ("{}, {'slurm': {'job-mem-odd': 4}}", "ValueError jobqueue.slurm.job-mem-odd"),
]


def test_where_settings_come_from(home, python):  # noqa: F811
    text = script(home, python, BEGIN + "".join(f"    told({call})\n" for call, _ in CASES))
    lines = text.splitlines()
    assert len(lines) == len(CASES), text
    assert [(call, line[: len(said)]) for (call, said), line in zip(CASES, lines)] == CASES
