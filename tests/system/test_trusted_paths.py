"""An engine trusts no path that another could change: not its configuration, its state, its sites' workspaces or what lies above them."""

import json
import os

import pytest
import yaml
from engine_at_home import EngineAtHome

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")

OTHER = 54321


def with_site(home, **keys):
    workspace = home.directory / "above" / "workspace"
    workspace.parent.mkdir(exist_ok=True)
    site = {"name": "here", "scheduler": "local", "workspace": str(workspace), **keys}
    return home.configure(yaml.safe_dump({"sites": [site]}))


@pytest.fixture
def home():
    with EngineAtHome() as engine:
        yield engine


def configuration_line(home):
    lines = [json.loads(line) for line in home.verb("doctor", "--json").out.splitlines()]
    return next(line for line in lines if line["check"] == "configuration")


def refusal(home):
    """What start, check and doctor say alike."""
    started = home.verb("engine", "start")
    assert started.code != 0, started.out
    checked = home.verb("engine", "run", "--check-config")
    assert checked.code == 2, checked.err
    assert checked.err.strip() in configuration_line(home)["text"]
    return checked.err


def test_a_folder_above_the_workspace_that_all_may_write(home):
    with_site(home)
    above = home.directory / "above"
    above.chmod(0o777)
    said = refusal(home)
    assert f"{above} (of user 0" in said and f"chmod o-w {above}" in said
    above.chmod(0o1777)
    home.ok("engine", "start")
    # What goes wrong later is seen before anything is put there, and by a reload.
    above.chmod(0o777)
    checked = home.verb("sites", "check", "here", "--json")
    assert checked.code != 0 and f"chmod o-w {above}" in checked.out + checked.err
    assert f"chmod o-w {above}" in home.verb("engine", "reload").err
    home.ok("engine", "status")


def test_a_configuration_of_another_or_that_others_may_write(home):
    file = with_site(home)
    os.chown(file, OTHER, OTHER)
    assert f"{file} (of user {OTHER}" in refusal(home)
    os.chown(file, 0, 0)
    file.chmod(0o666)
    assert f"chmod o-w {file}" in refusal(home)
    file.chmod(0o644)
    home.ok("engine", "start")


def test_a_folder_above_the_state_that_all_may_write(home):
    home.directory.chmod(0o777)
    assert f"chmod o-w {home.directory}" in refusal(home)


def test_a_project_folder_is_said_unless_its_group_is_trusted(home):
    with_site(home)
    above = home.directory / "above"
    os.chown(above, 0, 1)  # daemon
    above.chmod(0o2770)
    home.ok("engine", "run", "--check-config")
    assert "trust_group: daemon" in configuration_line(home)["text"]
    with_site(home, trust_group="daemon")
    assert "trust_group" not in configuration_line(home)["text"]
    with_site(home, trust_group="no-such-group")
    assert "no group 'no-such-group'" in refusal(home)
