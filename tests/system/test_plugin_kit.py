"""Somebody else's plugin, from nothing to a task, with an installed hpcbatch and no source of it."""

import json
import os
import random
import re
import shutil
import subprocess

import pytest
from engine_at_home import PREFIX, ROOT, EngineAtHome

BROKEN = PREFIX / "tests" / "plugin_host" / "broken"


def run(*words, cwd=None, env=None, timeout=600):
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prefix")
    before = os.umask(0o022)
    run("cmake", "--install", PREFIX, "--prefix", folder, "--strip")
    os.umask(before)
    return folder


def blocks_of(heading):
    """Its first block of commands, without hpcbatch's own `plugin new`."""
    text = (ROOT / "docs" / "write-a-plugin.md").read_text()
    part = re.search(rf"^## {heading}\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S).group(1)
    return [line.strip() for line in re.search(r"((?:^    .*\n)+)", part, flags=re.M).group(1).splitlines()]


def test_a_tool_from_nothing_to_a_task(prefix):
    """The commands of the page, as they stand there."""
    commands = blocks_of("A tool")
    assert len(commands) < 10 and "hpcbatch run --tool my_tool" in commands[-1]
    with EngineAtHome(prefix=prefix) as home:
        (home.directory / "work").mkdir()
        script = "set -eu\numask 022\n" + "\n".join(commands)
        run(
            "bash",
            "-c",
            script,
            cwd=home.directory / "work",
            env=home.env | {"PATH": f"{prefix}/bin:{os.environ['PATH']}", "PREFIX": str(prefix)},
        )
        made = home.directory / "work" / "my_tool" / "capitals.txt"
        assert made.read_text() == (made.parent / "README.md").read_text().upper()
        checked = home.verb(
            "plugin", "check", made.parent / "build/my_tool.so", "--config", made.parent / "my_tool.yaml"
        )
        assert checked.code == 0 and "it keeps the contract" in checked.out, checked
        assert "What is valid renders ... good" in checked.out
        listed = {one["name"]: one for one in json.loads(home.ok("plugin", "list", "--json"))["plugins"]}
        assert listed["my_tool"]["version"] == "0.1" and listed["slurm"]["kind"] == "scheduler"
        assert "my_tool" in home.ok("plugin", "list")


def test_a_scheduler_that_passes_its_suite(prefix):
    with EngineAtHome(prefix=prefix) as home:
        home.ok("plugin", "new", "scheduler", "my_batch")
        folder = home.directory / "my_batch"
        assert str(prefix) in (folder / "README.md").read_text() and "@" not in (folder / "CMakeLists.txt").read_text()
        run(
            "bash",
            "-c",
            "umask 022; cmake -S . -B build -DCMAKE_PREFIX_PATH=$0 && cmake --build build",
            prefix,
            cwd=folder,
        )
        run("ctest", "--test-dir", "build", "--output-on-failure", cwd=folder)
        checked = home.verb("plugin", "check", "my_batch/build/my_batch.so")
        assert checked.code == 0 and "scheduler plugin my_batch 0.1" in checked.out, checked
        wrong = home.directory / "wrong"
        wrong.write_text("cluster: mine\n")
        refused = home.verb("plugin", "check", "my_batch/build/my_batch.so", "--config", wrong)
        assert refused.code == 1 and "takes no configuration" in refused.out, refused


def test_a_transport_that_passes_its_suite_and_runs_tasks(prefix):
    with EngineAtHome(prefix=prefix) as home:
        home.ok("plugin", "new", "transport", "my_door")
        folder = home.directory / "my_door"
        run(
            "bash",
            "-c",
            "umask 022; cmake -S . -B build -DCMAKE_PREFIX_PATH=$0 && cmake --build build",
            prefix,
            cwd=folder,
        )
        run("ctest", "--test-dir", "build", "--output-on-failure", cwd=folder)
        config = home.directory / "door.yaml"
        config.write_text("command: [setsid, --wait]\n")
        checked = home.verb("plugin", "check", "my_door/build/my_door.so", "--config", config)
        assert (
            checked.code == 0
            and "transport plugin my_door 0.1" in checked.out
            and "it keeps the contract" in checked.out
        ), checked
        (home.directory / "plugins").mkdir()
        (home.directory / "plugins/transports").mkdir(mode=0o755)
        shutil.copy(folder / "build/my_door.so", home.directory / "plugins/transports")
        home.configure(
            f"""plugin_path: [{home.directory}/plugins]
sites:
  - name: behind
    scheduler: local
    transport: {{plugin: my_door, command: [setsid, --wait]}}
    workspace: {home.directory}/far
    shapes: [{{name: all, cpus: 2}}]
"""
        )
        assert home.ok("run", "--", "echo", "behind the door") == "behind the door\n"
        many = home.submit("--array", "1-20", "--", "sh", "-c", "exit 0")
        assert home.wait(many) == 0
        home.ok("sites", "check", "behind", timeout=300)


def test_what_cannot_be_written_is_said(prefix):
    with EngineAtHome(prefix=prefix) as home:
        for words, said in [
            (("tool", "My-Tool"), "'My-Tool' is no name of a plugin"),
            (("toll", "mine"), "toll"),
            (("tool", "mine", "--dir", "/proc/mine"), "cannot write"),
            (("tool", "mine", "--dir", home.directory), "is there already"),
        ]:
            refused = home.verb("plugin", "new", *words)
            assert refused.code == 2 and said in refused.err and len(refused.err.splitlines()) <= 3, refused
        assert not (home.directory / "mine").exists()


@pytest.mark.parametrize(
    "name, said",
    [
        ("tools/sound", "it keeps the contract"),
        ("tools/exits", "exits is not to be used: it ended the process there"),
        ("tools/aborts", "aborts is not to be used: it ended the process by SIGABRT there"),
        ("tools/badpointer", "badpointer is not to be used: it ended the process by SIGSEGV there"),
        ("tools/throwctor", "no such model"),
        ("tools/abi1", "it was built for plugin ABI 1"),
        ("tools/notplugin", "exports no hpcbatch_plugin"),
        ("tools/garbage", "cannot load plugin"),
        ("tools/nowhere", "loading it ends a process by SIGSEGV: its file is cut off or damaged"),
    ],
)
def test_what_is_wrong_with_a_plugin_is_told_in_words(prefix, tmp_path, name, said):
    file = tmp_path / f"{name.split('/')[1]}.so"
    shutil.copy(BROKEN / f"{name}.so", file)
    config = tmp_path / f"{file.stem}.yaml"
    config.write_text(f"tool: {file.stem}\nplugin: {file.stem}\ninputs: {{a: {{type: file}}}}\n")
    with EngineAtHome(prefix=prefix) as home:
        checked = home.verb("plugin", "check", file, "--config", config)
        assert said in checked.out + checked.err, checked
        assert checked.code == (0 if "keeps" in said else 1), checked
        told = json.loads(home.verb("plugin", "check", file, "--config", config, "--json").out)
        assert told["good"] == ("keeps" in said) and said in told.get("error", "it keeps the contract") + json.dumps(
            told
        ), told


def with_flipped_bits(whole, count):
    """Copies in which one bit is another, of what the loader reads and nobody runs: the heads that say where everything lies."""
    draw = random.Random(20)
    for _ in range(count):
        copy = bytearray(whole)
        at = draw.randrange(
            64 + 56 * int.from_bytes(whole[56:58], "little")
        )  # elf(5): the header and the program headers
        copy[at] ^= 1 << draw.randrange(8)
        yield at, bytes(copy)


@pytest.mark.parametrize("kind, name", [("schedulers", "slurm"), ("transports", "ssh"), ("tools", "sound")])
def test_a_plugin_with_a_flipped_bit_is_good_or_refused_in_words(prefix, tmp_path, kind, name):
    whole = (BROKEN / "tools/sound.so" if kind == "tools" else prefix / f"lib/hpcbatch/{kind}/{name}.so").read_bytes()
    file = tmp_path / f"{name}.so"
    with EngineAtHome(prefix=prefix) as home:
        for at, damaged in with_flipped_bits(whole, 60):
            file.write_bytes(damaged)
            checked = home.verb("plugin", "check", file)
            assert checked.code in (0, 1), (at, checked)
            assert checked.code == 0 or checked.err.startswith("hpcbatch: ") and len(checked.err.splitlines()) == 1, (
                at,
                checked,
            )


def test_an_engine_serves_beside_plugins_with_flipped_bits(prefix, tmp_path):
    whole = (prefix / "lib/hpcbatch/schedulers/slurm.so").read_bytes()
    folder = tmp_path / "plugins" / "schedulers"
    folder.mkdir(parents=True)
    for number, (_, damaged) in enumerate(with_flipped_bits(whole, 30)):
        (folder / f"bad{number}.so").write_bytes(damaged)
    with EngineAtHome(prefix=prefix, HPCBATCH_PLUGIN_PATH=str(folder.parent)) as home:
        assert len([one for one in home.json("plugin", "list")[0]["plugins"] if "refused" in one]) == 30
        assert home.ok("run", "--", "echo", "served") == "served\n"


def test_a_damaged_plugin_is_listed_with_the_reason(prefix, tmp_path):
    folder = tmp_path / "plugins" / "schedulers"
    folder.mkdir(parents=True)
    whole = (prefix / "lib/hpcbatch/schedulers/slurm.so").read_bytes()
    (folder / "cut.so").write_bytes(whole[: len(whole) // 2])
    (folder / "slurm.so").write_bytes(whole)
    with EngineAtHome(prefix=prefix, HPCBATCH_PLUGIN_PATH=str(folder.parent)) as home:
        text = home.ok("plugin", "list")
        assert "refused" in text and "cut off or damaged" in " ".join(text.split()), text
        assert f"{folder}/slurm.so hides {prefix}/lib/hpcbatch/schedulers/slurm.so" in text


def test_a_list_into_a_full_disk_is_no_good_end():
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [f"{PREFIX}/bin/hpcbatch", "plugin", "list"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.returncode == 2 and "cannot write the output: No space left on device" in done.stderr, done
