"""A process that has imported Galaxy and forks for each server of a run, because the imports are half of what a start costs.

`start` asks for a server, and begins the process where none runs yet for this run of the tests; it ends with the run.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pathlib
import pkgutil
import select
import signal
import socket
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).parent
BEGIN_SECONDS = 240


def start(python, arguments, cwd, environment, log):
    """A server in a session of its own; returns its process id. `arguments` are those of uvicorn."""
    owner = int(os.environ.get("HPCBATCH_TEST_RUN", os.getpid()))
    place = pathlib.Path(f"/tmp/hb-galaxys-{owner}")
    request = {"arguments": arguments, "cwd": str(cwd), "environment": environment, "log": str(log)}
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with contextlib.suppress(OSError):
            return _ask(place, request)
        place.unlink(missing_ok=True)
        with open(f"{place}.log", "w") as said:
            process = subprocess.Popen(
                [python, __file__, place, str(owner)],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env={**os.environ, "PYTHONPATH": str(HERE)},
                start_new_session=True,
            )
        end = time.monotonic() + BEGIN_SECONDS * float(os.environ.get("HPCBATCH_TEST_SLOWNESS", 1))
        while True:
            with contextlib.suppress(OSError):
                return _ask(place, request)
            words = pathlib.Path(f"{place}.log").read_text()[-4000:]
            assert process.poll() is None, f"Galaxy cannot be imported:\n{words}"
            assert time.monotonic() < end, f"Galaxy was not imported within {BEGIN_SECONDS} s:\n{words}"
            time.sleep(0.1)


def _ask(place, request):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(place))
        connection.sendall(json.dumps(request).encode())
        connection.shutdown(socket.SHUT_WR)
        return int(connection.makefile().read())


# --- the process ------------------------------------------------------------------------------------------------------


def _import_galaxy():
    for name in ("uvicorn", "galaxy.webapps.galaxy.fast_factory", "galaxy.webapps.galaxy.buildapp"):
        importlib.import_module(name)
    controllers = importlib.import_module("galaxy.webapps.galaxy.controllers")
    for module in pkgutil.iter_modules(controllers.__path__, controllers.__name__ + "."):
        importlib.import_module(module.name)
    _look_at_two_tables()
    _make_routes()


def _make_routes():
    """The routes of the API, which are the same in each server, and not its manual, which no test reads: the rest of a start but
    for some seconds."""
    from galaxy.webapps.galaxy import fast_app

    app = fast_app.get_fastapi_instance()
    fast_app.include_all_package_routers(app, "galaxy.webapps.galaxy.api")
    fast_app.get_fastapi_instance = lambda root_path="", lifespan=None: app
    fast_app.include_all_package_routers = lambda app, package: None
    fast_app.include_legacy_openapi = lambda app, galaxy: None


def _look_at_two_tables():
    """A start that finds its database reads the form of all its tables, to know two of them: a third of such a start."""
    from galaxy.model.migrations import base
    from sqlalchemy import MetaData

    def load(self, connection):
        known = MetaData()
        known.reflect(bind=connection, only=lambda name, _: name in (base.ALEMBIC_TABLE, base.SQLALCHEMYMIGRATE_TABLE))
        return known

    base.DatabaseStateCache._load_db_metadata = load


def _become_server(request):
    os.setsid()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(log)
    time.tzset()
    sys.argv = ["uvicorn", *request["arguments"]]
    import uvicorn

    uvicorn.main(args=request["arguments"], prog_name="uvicorn")


def _serve(place, owner):
    _import_galaxy()
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(place)
    listener.listen(16)
    while os.path.exists(f"/proc/{owner}"):
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        if not select.select([listener], [], [], 0.2)[0]:
            continue
        connection, _ = listener.accept()
        with connection:
            request = json.loads(connection.makefile().read())
            child = os.fork()
            if child == 0:
                listener.close()
                connection.close()
                _become_server(request)
                sys.exit(1)  # by the ordinary way out, as a server's own process
            connection.sendall(str(child).encode())
    for file in (place, f"{place}.lock", f"{place}.log"):
        with contextlib.suppress(OSError):
            os.unlink(file)


if __name__ == "__main__":
    _serve(sys.argv[1], int(sys.argv[2]))
