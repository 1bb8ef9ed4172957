"""Tasks in containers that Podman and Charliecloud really run, from an image made of this machine's programs: all is as without one."""

import json
import os
import stat
import time

import pytest
from container_images import EngineWithContainers, folder, make_tree, needs_containers
from engine_at_home import processes_with, wait_until

RUNTIMES = ("podman", "charliecloud")

pytestmark = needs_containers("podman", "charliecloud")


@pytest.fixture(scope="module")
def tree(folder):
    return make_tree(folder / "tree")


@pytest.fixture(scope="module", params=RUNTIMES)
def engine(request):
    """With one runtime by the site's rule."""
    with EngineWithContainers(request.param) as engine:
        yield engine


def run(engine, image, script, *options, **more):
    return engine.verb("run", *options, "--container", image, "--", "sh", "-c", script, **more)


def test_output_input_exit_code_and_surroundings(engine, tree):
    result = run(engine, tree, "cat /etc/mark; cat; echo err >&2; pwd; exit 3", stdin="typed\n")
    assert result == (3, f"in the image\ntyped\n{engine.directory}\n", "err\n")
    out = engine.ok("run", "--env", "OWN=a b$c", "--container", tree, "--", "env")
    seen = dict(line.split("=", 1) for line in out.splitlines() if "=" in line)
    assert seen["OWN"] == "a b$c"
    assert seen["HPCBATCH_CPUS"] == "1" and seen["HPCBATCH_SITE"] == "here" and "HPCBATCH_TASK_ID" in seen
    assert "/slot" in seen["TMPDIR"]
    assert run(engine, tree, "echo x > $TMPDIR/x && cat $TMPDIR/x") == (0, "x\n", "")


@pytest.mark.parametrize(
    "script, code",
    [
        ("exit 125", 125),
        ("exit 126", 126),
        ("exit 127", 127),
        ("exit 255", 255),
        ("exit 1", 1),
        ("kill -KILL $$", 137),
        ("kill -TERM $$", 143),
    ],
)
def test_codes_and_signals_are_the_programs_own(engine, tree, script, code):
    task = engine.submit("--container", tree, "--", "sh", "-c", script)
    engine.wait(task)
    shown = engine.show(task)
    assert shown["failure"] == ("tool_signal" if code in (137, 143) else "tool_failed"), shown
    assert run(engine, tree, script).code == code


def test_a_program_that_the_image_has_not(engine, tree):
    task = engine.submit("--container", tree, "--", "python3", "-c", "0")
    engine.wait(task)
    shown = engine.show(task)
    assert (shown["failure"], shown["exit_code"]) == ("tool_failed", 127), shown
    assert "cannot run 'python3'" in shown["message"]


def test_what_is_written_is_the_users_and_outputs_are_published(engine, tree, folder):
    place = folder / f"out-{engine.runtime}"
    place.mkdir()
    wanted = place / "result"
    (place / "data").write_text("data\n")
    engine.ok(
        "run",
        "--input",
        f"in={place}/data",
        "--output",
        f"out={wanted}",
        "--container",
        tree,
        "--",
        "sh",
        "-c",
        "cat in /etc/mark > out; ls -ld . >&2",
    )
    assert wanted.read_text() == "data\nin the image\n"
    assert wanted.stat().st_uid == os.geteuid()
    os.umask(0o027)
    engine.ok("run", "--cwd", place, "--container", tree, "--", "sh", "-c", "touch made")
    os.umask(0o022)
    assert (place / "made").stat().st_uid == os.geteuid()
    assert stat.S_IMODE((place / "made").stat().st_mode) == 0o640


def test_its_memory_limit_holds(engine, tree):
    task = engine.submit("--mem", "200M", "--container", tree, "--", "sh", "-c", "tail /dev/zero")
    assert engine.wait(task) == 1
    shown = engine.show(task)
    assert shown["failure"] == "oom_task", shown
    assert run(engine, tree, "echo fits", "--mem", "200M") == (0, "fits\n", "")


@pytest.mark.parametrize("script", ["sleep 7654", "trap '' TERM; sleep 7654 & wait; sleep 7654"])
def test_its_time_limit_holds_and_nothing_is_left(engine, tree, script):
    task = engine.submit("--time", "2s", "--container", tree, "--", "sh", "-c", script)
    assert engine.wait(task) == 1
    assert engine.show(task)["failure"] == "time_task"
    wait_until(lambda: not processes_with("sleep\x007654"), 10, "the end of the container's processes")


def test_who_cancels_leaves_no_process_and_no_container(engine, tree):
    task = engine.submit("--container", tree, "--", "sh", "-c", "sleep 8765 & echo begun; sleep 8765")
    wait_until(lambda: processes_with("sleep\x008765"), 20, "the task's begin")
    engine.ok("cancel", task)
    engine.wait(task)
    assert engine.show(task)["state"] == "cancelled"
    wait_until(lambda: not processes_with("sleep\x008765"), 10, "the end of the container's processes")
    wait_until(lambda: not processes_with(f"hpcbatch-{task}."), 10, "the end of the runtime's processes")


def test_its_cpus_are_its_own(engine, tree):
    assert (
        engine.ok("run", "--cpus", "1", "--container", tree, "--", "nproc").strip()
        == engine.ok("run", "--cpus", "1", "--", "nproc").strip()
    )


def test_nothing_runs_without_its_image(engine, folder):
    mark = folder / f"ran-{engine.runtime}"
    task = engine.submit("--container", folder / "absent", "--", "touch", mark)
    assert engine.wait(task) == 1
    shown = engine.show(task)
    assert shown["failure"] == "container_missing", shown
    assert not mark.exists()
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    task = engine.submit("--container", empty, "--", "touch", mark)
    assert engine.wait(task) == 1
    assert engine.show(task)["failure"] in ("container_failed", "tool_failed"), engine.show(task)
    assert not mark.exists()


def test_binds_and_variables_of_its_own(engine, tree, folder):
    place = folder / f"shown-{engine.runtime}"
    place.mkdir()
    (place / "file").write_text("shown\n")
    file = engine.directory / "tasks.yaml"
    binds = [f"{place}:/mnt/there"]
    file.write_text(
        json.dumps(
            [
                {
                    "name": "a",
                    "command": ["sh", "-c", "cat /mnt/there/file; echo $OWN $PATH; echo w > /mnt/there/new"],
                    "container": {"image": str(tree), "binds": binds, "environment": {"OWN": "set", "PATH": "/bin"}},
                }
            ]
        )
    )
    task = engine.ok("submit", "--file", file).split()[0]
    assert engine.wait(task) == 0, engine.show(task)
    assert engine.ok("log", task) == "shown\nset /bin\n"
    assert (place / "new").read_text() == "w\n"


def test_two_hundred_tasks(engine, tree):
    begin = time.monotonic()
    tasks = engine.submit(
        "--array",
        "1-200",
        "--mem",
        "100M",
        "--container",
        tree,
        "--",
        "sh",
        "-c",
        "cat /etc/mark >/dev/null && exit $((HPCBATCH_TASK_INDEX % 5 == 0 ? 7 : 0))",
        timeout=300,
    )
    engine.wait(tasks, timeout=300)
    print(f"200 tasks with {engine.runtime} took {time.monotonic() - begin:.1f} s")
    ends = engine.show(tasks)
    assert (ends["counts"]["done"], ends["counts"]["failed"]) == (160, 40), ends
    wait_until(lambda: not processes_with("conmon\x00"), 10, "the end of Podman's processes")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.parametrize("runtime", RUNTIMES)
def test_somebody_who_is_not_root(folder, runtime):
    user = 4321
    tree = folder / f"tree-of-{user}-{runtime}"
    make_tree(tree)
    for path in (tree, *tree.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)
    folder.chmod(0o755)
    with EngineWithContainers(runtime, user=user) as engine:
        result = run(engine, tree, "cat /etc/mark; echo x > made; exit 4", "--mem", "200M")
        assert result == (4, "in the image\n", "")
        assert (engine.directory / "made").stat().st_uid == user
        task = engine.submit("--time", "2s", "--container", tree, "--", "sh", "-c", "sleep 6543")
        assert engine.wait(task) == 1
        assert engine.show(task)["failure"] == "time_task"
        wait_until(lambda: not processes_with("sleep\x006543"), 10, "the end of the container's processes")


def test_podman_without_control_groups(tree):
    with EngineWithContainers("podman", setup=["export HPCBATCH_CONTROL_GROUPS=no"]) as engine:
        fat = engine.submit("--mem", "300M", "--container", tree, "--", "tail", "/dev/zero")
        slow = engine.submit("--container", tree, "--", "sleep", "5432")
        engine.wait(fat)
        assert engine.show(fat)["failure"] == "oom_task", engine.show(fat)
        engine.ok("cancel", slow)
        wait_until(lambda: not processes_with("sleep\x005432"), 10, "the end of the container's processes")
