"""What is wrong with a configuration is said in one message with its place, and nothing is started."""

import os
import pathlib
import shutil
import subprocess

import pytest
from engine_at_home import PREFIX, ROOT, processes_with

SITE = "sites:\n  - name: here\n    scheduler: local\n"

DESCRIPTOR = """#include <hpcbatch/abi.h>
static void* create(const char* c, char* e, uint32_t n) { (void)c; (void)e; (void)n; return 0; }
extern const hpcbatch_plugin_descriptor hpcbatch_plugin;
const hpcbatch_plugin_descriptor hpcbatch_plugin = {HPCBATCH_ABI_MAGIC, HPCBATCH_ABI_MAJOR + MORE, 0,
    sizeof(hpcbatch_plugin_descriptor), HPCBATCH_KIND_SCHEDULER, "mine", "1", "of another compiler", create};
"""


def check_refused(home, *named, code=2):
    """Each verb that needs an engine ends with one message, and none was started."""
    for verb, expected in ((("engine", "start"), code), (("engine", "run"), code), (("submit", "--", "true"), code)):
        result = home.verb(*verb)
        assert result.code == expected, (verb, result)
        assert result.out == "" and result.err.count("hpcbatch: ") == 1, (verb, result)
        for text in named:
            assert text in result.err, (verb, text, result.err)
    assert home.verb("run", "--", "true").code == 125
    assert not (home.home / "socket").exists()
    assert processes_with(str(home.directory)) == {}


def plugin(home, more):
    folder = home.directory / "plugins/schedulers"
    folder.mkdir(parents=True, mode=0o755)
    source = home.directory / "mine.c"
    source.write_text(DESCRIPTOR)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DMORE={more}", f"-I{ROOT}/core/sdk/include", source, "-o", folder / "mine.so"], check=True)
    return folder / "mine.so"


@pytest.mark.parametrize("text, line, named", [
    (SITE + "    max_queud: 3\n", 4, ["max_queud", "max_queued"]),
    ("site:\n  - name: here\n", 1, ["'site'", "sites"]),
    (SITE + "    shapes:\n      - {name: a, cpus: many}\n", 5, ["cpus"]),
    (SITE + "    shapes:\n      - {name: a, cpus: 1, coulour: red}\n", 5, ["coulour"]),
    (SITE + "  - name: here\n    scheduler: local\n", 4, ["here"]),
    ("sites:\n  - name: here\n   scheduler: local\n", 3, []),
    ("sites:\n  - name: here\n    scheduler: slurmm\n    workspace: /tmp\n    shapes: [{name: a, cpus: 1, memory: 1G, walltime: 1h}]\n",
     3, ["slurmm", "slurm"]),
    (SITE + "    transport: carrier_pigeon\n", 4, ["carrier_pigeon"]),
])
def test_a_fault_in_the_file_is_named_with_its_line(home, text, line, named):
    file = home.configure(text)
    check_refused(home, f"{file}:{line}", *named)


def test_a_file_that_is_not_there(home):
    home.env["HPCBATCH_CONFIG"] = str(home.directory / "none.yaml")
    check_refused(home, str(home.directory / "none.yaml"))


def test_a_plugin_of_another_abi(home):
    file = plugin(home, 1)
    configuration = home.configure(f"plugin_path: [{file.parent.parent}]\nsites:\n  - name: here\n    scheduler: mine\n"
                                   "    workspace: /tmp/none\n    shapes: [{name: a, cpus: 1, memory: 1G, walltime: 1h}]\n")
    check_refused(home, f"{configuration}:4", str(file), "ABI")


def test_a_plugin_of_another_compiler(home):
    file = plugin(home, 0)
    configuration = home.configure(f"plugin_path: [{file.parent.parent}]\nsites:\n  - name: here\n    scheduler: mine\n"
                                   "    workspace: /tmp/none\n    shapes: [{name: a, cpus: 1, memory: 1G, walltime: 1h}]\n")
    check_refused(home, f"{configuration}:4", str(file))


@pytest.mark.parametrize("which", ["file", "folder"])
def test_a_plugin_that_everybody_can_write(home, which):
    folder = home.directory / "plugins/schedulers"
    folder.mkdir(parents=True)
    shutil.copy(PREFIX / "lib/hpcbatch/schedulers/local.so", folder / "local.so")
    folder.chmod(0o755)
    (folder / "local.so").chmod(0o755)
    (folder / "local.so" if which == "file" else folder).chmod(0o777)
    home.configure(f"plugin_path: [{folder.parent}]\n" + SITE)
    check_refused(home, str(folder / "local.so"), "chmod go-w")


def test_a_home_that_others_can_read(home):
    home.home.mkdir(mode=0o755)
    os.chmod(home.home, 0o755)
    for verb in (("engine", "start"), ("engine", "run"), ("submit", "--", "true")):
        result = home.verb(*verb)
        assert result.code in (1, 2, 3) and str(home.home) in result.err and "700" in result.err, (verb, result)
    assert processes_with(str(home.directory)) == {}


def test_a_workspace_that_is_there_keeps_its_mode(home):
    workspace = home.directory / "workspace"
    workspace.mkdir()
    workspace.chmod(0o755)
    home.configure(SITE + f"    workspace: {workspace}\n")
    assert home.ok("run", "--", "echo", "there") == "there\n"
    assert workspace.stat().st_mode & 0o777 == 0o755
    assert (workspace / "bin").stat().st_mode & 0o777 == 0o700


def test_a_workspace_that_everybody_can_write(home):
    workspace = home.directory / "workspace"
    workspace.mkdir()
    workspace.chmod(0o777)
    home.configure(SITE + f"    workspace: {workspace}\n")
    check_refused(home, str(workspace), "writable by all")


def test_another_configuration_than_that_of_the_running_engine_is_refused(home):
    used, other = home.directory / "used.yaml", home.directory / "other.yaml"
    for file in (used, other):
        file.write_text(SITE)
    home.ok("engine", "start", "--config", used)
    home.ok("engine", "start", "--config", used)
    home.ok("engine", "start")
    refused = home.verb("engine", "start", "--config", other)
    assert refused.code == 2 and str(used) in refused.err, refused


def test_a_local_site_of_ones_own_shape(home):
    home.configure(SITE + "    shapes: [{name: small, cpus: 1, memory: 1G, walltime: 1h, tags: [quick]}]\n")
    assert home.ok("run", "--tag", "quick", "--", "printenv", "HPCBATCH_SITE") == "here\n"
    shape = home.json("sites", "show", "here")[0]["shapes"][0]
    assert (shape["name"], shape["cpus"], shape["walltime"]) == ("small", 1, 3600)
    too_long = home.verb("submit", "--time", "2h", "--", "true")
    assert too_long.code == 2 and "small" in too_long.err
