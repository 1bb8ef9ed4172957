"""A Galaxy job as a submit to the engine, and its name there.  Pure."""

import re

# Of the server alone: its configuration, and what opens other doors.
_SERVERS_OWN = re.compile(
    r"GALAXY_CONFIG|PASSWORD|PASSWD|PASSPHRASE|SECRET|CREDENTIAL|PRIVATE_?KEY|ACCESS_?KEY|API_?KEY|DATABASE_(URL|CONNECTION)|BROKER_URL"
    r"|(^|_)(TOKEN|DSN|PWD_FILE)(_|$)|^(NOTIFY_SOCKET|SSH_AUTH_SOCK)$",
    re.IGNORECASE,
)
_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)

# Said of where a job may run, and so of its metadata step too.
_WHERE = ("site", "not_sites", "tags", "priority")


def key_of(tag, created, resubmissions):
    """The same after a crash of Galaxy or the engine, another after a resubmission.

    `tag`: Galaxy's name of the job, or of a part of one.  `created`: when Galaxy made the job; numbers start again in a new database.
    """
    return f"job {tag} of {created:%Y-%m-%dT%H:%M:%S.%f}" + (f", again {resubmissions}" if resubmissions else "")


def external_id(ids):
    return "+".join(ids)


def ids_of(external):
    return str(external).split("+") if external else []


def possible_external_ids(ids):
    """The external ids of jobs that tasks may be of: the tasks of one submit are neighbours."""
    numbers = [int(one) for one in ids if one.isdigit()]
    found = {external_id([str(one)]) for one in numbers}
    found.update(external_id([str(one), str(one + 1)]) for number in numbers for one in (number - 1, number))
    return found


def kept_back(inherited):
    """Names of variables that Galaxy was started with and no tool is to see; a proxy's password is no secret of Galaxy's."""
    return sorted(
        name
        for name, value in inherited.items()
        if _SERVERS_OWN.search(name) or (_URL_WITH_PASSWORD.search(value) and not name.lower().endswith("_proxy"))
    )


def environment_of(inherited):
    """Of the job script: what Galaxy was started with, without Galaxy's own Python, and without what is the server's alone."""
    environment = dict(inherited)
    for name in kept_back(inherited):
        del environment[name]
    virtual_env = environment.pop("VIRTUAL_ENV", None)
    for name in ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV_PROMPT", "PS1"):
        environment.pop(name, None)
    if virtual_env and "PATH" in environment:
        environment["PATH"] = ":".join(
            entry for entry in environment["PATH"].split(":") if entry != virtual_env + "/bin"
        )
    return environment


def slots_statement(slots):
    """GALAXY_SLOTS of the task, not of its pilot; and which GPUs are the task's, for containers: they see prefixed variables only."""
    return "\n".join(
        (
            f'export GALAXY_SLOTS="{slots}"',
            'export GALAXY_SLOTS_CONFIGURED="1"',
            'if [ -n "$CUDA_VISIBLE_DEVICES" ]; then',
            '  export SINGULARITYENV_CUDA_VISIBLE_DEVICES="$CUDA_VISIBLE_DEVICES" APPTAINERENV_CUDA_VISIBLE_DEVICES="$CUDA_VISIBLE_DEVICES"',
            "fi",
        )
    )


def memory_statement(slots):
    """What the pilot has given to the task."""
    return "\n".join(
        (
            'if [ -n "$HPCBATCH_MEM_MB" ]; then',
            f'  export GALAXY_MEMORY_MB="$HPCBATCH_MEM_MB" GALAXY_MEMORY_MB_PER_SLOT="$((HPCBATCH_MEM_MB / {slots}))"',
            "fi",
        )
    )


def kind_of(tool):
    """What reports put its jobs together by: the tool, as it is called within its repository, and its version."""
    name = getattr(tool, "old_id", None) or getattr(tool, "id", None)
    return {"kind": f"{name} {getattr(tool, 'version', None) or ''}".strip()} if name else {}


def script_task(needs, job_file, directory, output_file, error_file, name):
    return {
        **needs,
        "command": [job_file],
        "directory": directory,
        "shared": [directory],
        "stdout": output_file,
        "stderr": error_file,
        "name": name,
    }


def tasks_of(script, metadata=None):
    """One Galaxy job: its script, and behind it, however it ended, the step that looks at its outputs."""
    if metadata is None:
        return [script]
    return [script, {**metadata, "after_any": ["#1"]}]


def where_of(needs):
    return {name: needs[name] for name in _WHERE if name in needs}
