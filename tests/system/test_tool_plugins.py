"""Tools' plugins that misbehave: whoever submits hears one sentence, everybody else is served meanwhile."""

import concurrent.futures
import json
import shutil
import time

import pytest
from engine_at_home import PREFIX, EngineAtHome, processes_with, wait_until

BROKEN = PREFIX / "tests" / "plugin_host" / "broken" / "tools"
SITE = {
    "name": "here",
    "scheduler": "local",
    "transport": "shared_fs",
    "interface": "127.0.0.1",
    "idle_after": "5s",
    "shapes": [{"name": "small", "cpus": 2, "memory": "1G"}],
}


@pytest.fixture
def home():
    """An engine with a tool for each of these plugins."""
    with EngineAtHome() as engine:
        plugins = engine.directory / "plugins" / "tools"
        tools = engine.directory / "tools"
        plugins.mkdir(parents=True)
        tools.mkdir()
        for name in (
            "sound",
            "aborts",
            "exits",
            "endless",
            "badpointer",
            "tengigabytes",
            "thrownumber",
            "talkative",
            "throwrender",
        ):
            shutil.copy(BROKEN / f"{name}.so", plugins)
            (tools / f"{name}.yaml").write_text(f"tool: {name}\nplugin: {name}\n")
        engine.configure(
            json.dumps(
                {
                    "sites": [SITE | {"workspace": str(engine.directory / "w")}],
                    "tool_path": [str(tools)],
                    "plugin_path": [str(plugins.parent)],
                },
                indent=1,
            )
        )
        yield engine


@pytest.mark.parametrize(
    "name, said",
    [
        ("aborts", "its plugin aborts ended its process by SIGABRT"),
        ("exits", "its plugin exits ended its process with exit code 7"),
        ("badpointer", "its plugin badpointer ended its process by SIGSEGV"),
        (
            "tengigabytes",
            "std::bad_alloc|gave no answer within 5 s",
        ),  # a busy machine has not handed out so much by then
        ("thrownumber", "its plugin thrownumber threw something that is no std::exception"),
        ("throwrender", "no such model"),
    ],
)
def test_one_that_fails_costs_its_submit_alone(home, name, said):
    running = home.submit("--", "sh", "-c", "echo began; sleep 2")
    refused = home.verb("submit", "--tool", name)
    assert (
        refused.code == 2
        and f"cannot use tool {name}: " in refused.err
        and any(one in refused.err for one in said.split("|"))
    ), refused
    assert len(refused.err.splitlines()) <= 3, refused.err
    # The same sentence for who only asks.
    assert home.verb("submit", "--dry-run", "--tool", name).code == 2
    assert home.wait(home.submit("--tool", "sound")) == 0
    assert home.wait(running) == 0


def test_others_are_answered_while_one_hangs(home):
    home.ok("engine", "start")
    pid = home.engine_pid()
    with concurrent.futures.ThreadPoolExecutor(1) as beside:
        hangs = beside.submit(home.verb, "submit", "--tool", "endless")
        wait_until(
            lambda: any("hpcbatch-tool-host" in line for line in processes_with(str(home.directory)).values()),
            30,
            "the process of the plugin",
        )
        answers = 0
        while not hangs.done():
            began = time.monotonic()
            assert home.status()["uptime_s"] >= 0
            assert home.verb("submit", "--", "true").code == 0
            # Two commands of the shell; the plugin has five seconds.
            assert time.monotonic() - began < 3
            answers += 1
        refused = hangs.result()
    assert refused.code == 2 and "its plugin endless gave no answer within 5 s and was ended" in refused.err, refused
    assert answers >= 2 and home.engine_pid() == pid
    assert home.wait(home.submit("--tool", "talkative")) == 0


def test_no_process_of_plugins_outlives_its_engine(home):
    assert home.wait(home.submit("--tool", "sound")) == 0
    [host] = [pid for pid, line in processes_with(str(home.directory)).items() if "hpcbatch-tool-host" in line]
    home.kill_engine()
    wait_until(lambda: host not in processes_with(str(home.directory)), 30, "its end")


def test_tools_that_have_plugins_are_checked(home):
    assert home.verb("tools", "check", "sound").code == 0
    assert home.verb("tools", "check", "aborts").code == 0, "it opens well, and aborts later"
    (home.directory / "tools" / "none.yaml").write_text("tool: none\nplugin: soundd\n")
    checked = home.verb("tools", "check", "none")
    assert checked.code != 0 and "did you mean 'sound'" in checked.out + checked.err, checked
