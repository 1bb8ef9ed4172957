"""How a Snakemake that was killed and is started again finds what it had running.

Before a submit is sent, each of its jobs is marked in Snakemake's own way with the submit's key and its place there; what has
become of it the engine knows by the key.  So nothing is in between being sent and being known.
"""

import os
import uuid


def client_of(folder):
    """This working folder's name at the engine, drawn once and kept in `folder`, Snakemake's own: a key alone could be
    another engine's."""
    folder = os.path.join(folder, "hpcbatch")
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "client")
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


def external_id(client, key, place):
    return f"{client}/{key}/{place}"


def place_of(external, client):
    """`(key, place)` of a job that this folder has sent, else None."""
    parts = (external or "").split("/")
    if len(parts) != 3 or parts[0] != client or not parts[2].isdigit():
        return None
    return parts[1], int(parts[2])
