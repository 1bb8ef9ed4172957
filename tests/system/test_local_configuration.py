"""A configuration that is not there yet, is not whole, or changes while the engine runs."""

import pytest
from engine_at_home import EngineAtHome, wait_until


@pytest.fixture
def home():
    with EngineAtHome() as engine:
        yield engine


def local_site(name, cpus=1):
    return f"  - {{name: {name}, scheduler: local, shapes: [{{name: all, cpus: {cpus}, memory: 500M}}]}}\n"


def test_a_changed_configuration_is_taken_over_while_tasks_go_on(home, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text("sites:\n" + local_site("one"))
    home.ok("engine", "start", "--config", file)
    before = home.status()["pid"]
    waiter = home.begin("run", "--", "sh", "-c", f"while ! test -e {tmp_path}/go; do sleep 0.05; done; echo done")
    wait_until(lambda: [one["state"] for one in home.json("list")] == ["running"], what="the start of the task")
    file.write_text("sites:\n  - {name: bad, schedular: local}\n")
    refused = home.verb("engine", "reload")
    assert refused.code == 2 and "did you mean 'scheduler'?" in refused.err and home.status()["pid"] == before, refused
    file.write_text("sites:\n" + local_site("one") + local_site("two"))
    assert str(file) in home.ok("engine", "reload")
    assert home.status()["pid"] != before and not home.status()["ends_when_idle"]
    assert {site["name"] for site in home.json("sites")} == {"one", "two"}
    (tmp_path / "go").touch()
    out, err = waiter.communicate(timeout=60)
    assert (waiter.returncode, out) == (0, "done\n"), err


def test_an_engine_that_is_stopped_knows_what_it_was_just_submitting(home):
    for _ in range(5):
        task = home.submit("--", "true")
        home.ok("engine", "stop")
        home.ok("engine", "start")
        assert home.wait(task) == 0
        home.ok("engine", "stop", "--now")
        home.ok("engine", "start")
    assert "unclear" not in (home.home / "engine.log").read_text()


def test_a_site_without_shapes_is_an_engine_that_says_so(home, tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(f"sites:\n  - {{name: cluster, scheduler: slurm, workspace: {tmp_path}/w}}\n")
    home.ok("engine", "start", "--config", file)
    assert "it has no shapes" in home.json("sites")[0]["message"]
    refused = home.verb("submit", "--", "true")
    assert refused.code == 2 and "have no shapes; 'hpcbatch sites check cluster' proposes some" in refused.err, refused


def test_verbs_that_look_start_an_engine(home):
    task = home.submit("--hold", "--", "true")
    home.ok("engine", "stop")
    shown = home.verb("list")
    assert shown.code == 0 and task in shown.out and "one was started" in shown.err, shown
    home.ok("engine", "stop")
    home.ok("release", task)
    assert home.wait(task) == 0


def test_a_link_that_leads_nowhere_is_a_configuration(home, tmp_path):
    link = tmp_path / "hpcbatch" / "config.yaml"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "gone.yaml")
    refused = home.verb("submit", "--", "true", XDG_CONFIG_HOME=str(tmp_path))
    assert refused.code == 2 and str(link) in refused.err, refused
