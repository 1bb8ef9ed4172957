"""What the executor keeps in `.snakemake/hpcbatch`, so that a Snakemake that was killed and is started again takes up what
runs.

`client`        this folder's name at the engine, drawn once: a task id alone could be another engine's
`submit-*.json` a submit between its being sent and its jobs' being marked: body, key, and each task's outputs
"""

import json
import os
import uuid


class RunState:
    def __init__(self, folder):
        """`folder`: Snakemake's own (`persistence.path`)."""
        self._folder = os.path.join(folder, "hpcbatch")
        os.makedirs(self._folder, exist_ok=True)
        self.client = self._read_client()

    def _read_client(self):
        path = os.path.join(self._folder, "client")
        try:
            with open(path, encoding="ascii") as file:
                name = file.read().strip()
            if name.startswith("snakemake:"):
                return name
        except FileNotFoundError:
            pass
        name = "snakemake:" + uuid.uuid4().hex[:16]
        temporary = f"{path}.{os.getpid()}"
        with open(temporary, "w", encoding="ascii") as file:
            file.write(name + "\n")
        os.replace(temporary, path)
        return name

    def intend(self, key, tasks, outputs):
        """Before a submit: what will have been sent.  Returns what `done` takes."""
        path = os.path.join(self._folder, f"submit-{key}.json")
        temporary = path + ".new"
        with open(temporary, "w", encoding="utf-8") as file:
            json.dump({"key": key, "tasks": tasks, "outputs": outputs}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        return path

    def done(self, path):
        """Its jobs are marked, or it was refused."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def left_over(self):
        """The submits of a Snakemake that was killed in the midst of them, each with its path."""
        for name in sorted(os.listdir(self._folder)):
            if not (name.startswith("submit-") and name.endswith(".json")):
                continue
            path = os.path.join(self._folder, name)
            try:
                with open(path, encoding="utf-8") as file:
                    submit = json.load(file)
                yield path, submit["key"], submit["tasks"], submit["outputs"]
            except (OSError, ValueError, KeyError):
                self.done(path)


def external_id(client, task):
    return f"{client}/{task}"


def task_of(external, client):
    """The task's id where it is one of this folder's, else None."""
    owner, _, task = (external or "").rpartition("/")
    return task if owner == client and task else None
