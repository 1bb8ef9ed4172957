"""One drop box, three users: nobody's job is taken for another's, and none does what its owner could not have done himself.

The engine is root's or a plain user's; Bob works, Mallory attacks. All are numbers without accounts.
"""

import json
import os

import pytest
import yaml
from engine_at_home import EngineAtHome, wait_until
from second_user import as_user

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may take other users' numbers")

OPERATOR, BOB, MALLORY, LAB = 54001, 54002, 54003, 54100

COPY = "#!/bin/sh\ncp <<workspace>>/input/<<input>> <<workspace>>/output/<<result>>\n"

# Each order as [what, ...]; says which were refused.
DO = r"""
import json, os, sys
refused = []
for what, *args in json.load(sys.stdin):
    try:
        if what == "drop":
            with open(args[0] + ".part", "w") as file:
                file.write(args[1])
            os.chmod(args[0] + ".part", 0o644)
            os.rename(args[0] + ".part", args[0])
        elif what == "read":
            open(args[0]).close()
        else:
            getattr(os, what)(*args)
    except OSError as error:
        refused.append([what, str(error)])
json.dump(refused, sys.stdout)
"""


def done_by(user, *orders, group=None):
    """What he was refused of these orders, in words."""
    return as_user(user, DO, [[what, *map(str, args)] for what, *args in orders], group)


class SharedBox:
    def __init__(self, home, operator, mode):
        self.home, self.operator = home, operator
        home.directory.chmod(0o755)
        self.box, self.allowed, self.templates, self.open = (
            home.directory / name for name in ("box", "allowed", "templates", "open")
        )
        for folder, rights in ((self.box, mode), (self.allowed, 0o755), (self.templates, 0o755), (self.open, 0o777)):
            folder.mkdir()
            folder.chmod(rights)
            os.chown(folder, operator, LAB)
        (self.templates / "copy.template").write_text(COPY)
        os.chown(self.templates / "copy.template", operator, operator)
        self.mine = {}
        for user in (BOB, MALLORY):
            self.mine[user] = home.directory / str(user)
            self.mine[user].mkdir(mode=0o755)
            (self.mine[user] / "in").write_text(f"of {user}")
            for path in (self.mine[user], self.mine[user] / "in"):
                os.chown(path, user, user)

    def watch(self):
        return self.home.verb(
            "dropbox", self.box, "--templates", self.templates, "--allow", self.allowed, "--allow", self.open
        )

    def job(self, user, out, source=None, script="copy"):
        return json.dumps(
            {
                "script": script,
                "args": {},
                "input_map": {"input": str(source or self.mine[user] / "in")},
                "output_map": {"result": str(out)},
            }
        )

    def drop(self, user, name, text):
        assert done_by(user, ("drop", self.box / name, text)) == []

    def result(self, name):
        file = self.box / (name + ".finished")
        wait_until(file.exists, 60, name)
        return yaml.safe_load(file.read_text())["job"]

    def run(self, user, name, out):
        self.drop(user, name, self.job(user, out))
        return self.result(name)


@pytest.fixture(params=[0, OPERATOR], ids=["root", "user"])
def operator(request):
    return request.param


@pytest.fixture
def home(operator):
    with EngineAtHome(user=operator) as engine:
        engine.ok("engine", "start")
        yield engine


@pytest.fixture
def shared(home, operator):
    """All may put files there, and nobody moves those of others."""
    shared = SharedBox(home, operator, 0o1777)
    assert shared.watch().code == 0
    return shared


def test_everybodys_jobs_run_and_their_results_are_theirs(shared):
    for user in (BOB, MALLORY):
        out = shared.allowed / f"out{user}"
        assert shared.run(user, f"{user}.job", out)["status"] == "ok"
        assert out.read_text() == f"of {user}"
        assert done_by(user, ("read", out), ("read", shared.box / f"{user}.job.finished")) == []


def test_what_a_template_wrote_is_the_submitters_to_read_whatever_the_umask(shared):
    (shared.templates / "close.template").write_text(COPY.replace("#!/bin/sh", "#!/bin/sh\numask 077"))
    shared.drop(BOB, "x.job", shared.job(BOB, shared.allowed / "out", script="close"))
    assert shared.result("x.job")["status"] == "ok"
    assert done_by(BOB, ("read", shared.allowed / "out")) == []


@pytest.mark.parametrize("mode", [0o770, 0o2775, 0o757, 0o777])
def test_a_folder_in_which_others_may_rename_is_not_watched(home, operator, mode):
    """He has the engine write a document of his words, and renames it to a job: it would be the engine's own."""
    shared = SharedBox(home, operator, mode)
    secret, loot = home.directory / "secret", shared.allowed / "loot"
    secret.write_text("for the operator alone")
    secret.chmod(0o600)
    os.chown(secret, operator, operator)
    watched = shared.watch()
    if watched.code == 0:  # then this is what he does
        assert done_by(MALLORY, ("drop", shared.box / "x.job", shared.job(MALLORY, loot, secret)), group=LAB) == []
        shared.result("x.job")
        assert done_by(MALLORY, ("rename", shared.box / "x.job.finished", shared.box / "y.job"), group=LAB) == []
        shared.result("y.job")
    assert not loot.exists()
    assert watched.code != 0 and "chmod" in watched.err, watched


def test_a_folder_that_is_opened_later_serves_nobody(home, operator):
    shared = SharedBox(home, operator, 0o1777)
    assert shared.watch().code == 0
    assert shared.run(MALLORY, "x.job", shared.allowed / "before")["status"] == "ok"
    shared.box.chmod(0o777)
    shared.drop(MALLORY, "y.job", shared.job(MALLORY, shared.allowed / "after"))
    wait_until(lambda: "chmod" in home.log_end(), 60, "a word about the folder")
    assert (shared.box / "y.job").exists() and not (shared.allowed / "after").exists()
    shared.box.chmod(0o1777)
    assert shared.result("y.job")["status"] == "ok"


def test_a_published_result_is_no_job_of_the_engines_user(shared, operator):
    """Its text is Mallory's, its owner may be the engine's user, and he may move it out of a folder where all may."""
    pwned = shared.home.directory / "pwned"
    evil = json.dumps({"script": "command", "args": {"line": f"touch {pwned}"}, "input_map": {}, "output_map": {}})
    (shared.mine[MALLORY] / "in").write_text(evil)
    assert shared.run(MALLORY, "x.job", shared.open / "out")["status"] == "ok"
    assert done_by(MALLORY, ("rename", shared.open / "out", shared.box / "y.job")) == []
    result = shared.result("y.job")
    assert result["status"] == "error" and not pwned.exists()
    assert ("others" if operator else "templates only") in result["message"]


def test_a_forged_document_is_not_taken_up_by_the_next_engine(shared, operator):
    pwned = shared.home.directory / "pwned"
    work = f"{shared.home.directory}/nowhere/h-1-2"
    evil = json.dumps(
        {
            "script": "command",
            "args": {"line": f"touch {pwned}"},
            "input_map": {},
            "output_map": {},
            "hpc": {"key": "k", "workspace": work, "owner": operator, "input_map": {}, "output_map": {}},
        }
    )
    (shared.mine[MALLORY] / "in").write_text(evil)
    assert shared.run(MALLORY, "x.job", shared.open / "out")["status"] == "ok"
    shared.home.kill_engine()
    assert done_by(MALLORY, ("rename", shared.open / "out", shared.box / "y.job.submitted")) == []
    shared.home.ok("engine", "start")
    assert shared.run(BOB, "z.job", shared.allowed / "later")["status"] == "ok"
    assert (shared.box / "y.job.submitted").exists() and not (shared.box / "y.job.finished").exists()


def test_jobs_of_a_shared_box_survive_the_end_of_the_engine(shared):
    gate = shared.home.directory / "go"
    (shared.templates / "slow.template").write_text(
        COPY.replace("cp", f"touch {shared.open}/began; while [ ! -e {gate} ]; do sleep 0.02; done\ncp")
    )
    shared.drop(BOB, "x.job", shared.job(BOB, shared.allowed / "out", script="slow"))
    wait_until((shared.open / "began").exists, 60, "the start of the job")
    shared.home.kill_engine()
    gate.touch()
    shared.home.ok("engine", "start")
    assert shared.result("x.job")["status"] == "ok"
    assert (shared.allowed / "out").read_text() == f"of {BOB}"


def test_a_job_file_that_others_can_write_is_not_its_owners_word(shared):
    for mode in (0o664, 0o646):
        name = f"{mode:o}.job"
        aside = shared.box / f".{name}"
        assert done_by(BOB, ("drop", aside, shared.job(BOB, shared.allowed / name))) == []
        aside.chmod(mode)
        assert done_by(BOB, ("rename", aside, shared.box / name)) == []
        result = shared.result(name)
        assert result["status"] == "error" and "write it" in result["message"]
        assert not (shared.allowed / name).exists()


def test_a_file_of_several_names_is_no_job(shared):
    kept = shared.mine[BOB] / "kept"
    assert (
        done_by(BOB, ("drop", kept, shared.job(BOB, shared.allowed / "out")), ("link", kept, shared.box / "x.job"))
        == []
    )
    assert shared.result("x.job")["status"] == "error"
    assert not (shared.allowed / "out").exists() and kept.exists()


def test_nobodys_rubbish_replaces_anothers_result(shared):
    """The results are Bob's; Mallory drops rubbish, and jobs that are none, of the same names."""
    for name in ("x.job", "y.job"):
        assert shared.run(BOB, name, shared.allowed / name)["status"] == "ok"
    before = {name: (shared.box / f"{name}.finished").read_bytes() for name in ("x.job", "y.job")}
    shared.drop(MALLORY, "x.job", "rubbish: [")
    shared.drop(MALLORY, "y.job", shared.job(MALLORY, shared.allowed / "of-mallory"))
    wait_until(lambda: not list(shared.box.glob("*.job")), 90, "the end of both files")
    assert {name: (shared.box / f"{name}.finished").read_bytes() for name in before} == before
    assert not (shared.allowed / "of-mallory").exists()
    assert shared.run(BOB, "z.job", shared.allowed / "z")["status"] == "ok"


def test_nobodys_job_replaces_anothers_published_result(shared, operator):
    out = shared.allowed / "out"
    assert shared.run(BOB, "x.job", out)["status"] == "ok"
    refused = shared.run(MALLORY, "y.job", out)
    assert refused["status"] == "error" and str(BOB) in refused["message"], refused
    assert out.read_text() == f"of {BOB}"
    (shared.mine[BOB] / "in").write_text("once more")
    assert shared.run(BOB, "z.job", out)["status"] == "ok", "his own result he may replace"
    assert out.read_text() == "once more"


def test_in_a_folder_where_all_may_replace_files_jobs_may_too(shared):
    """As each could with his own hands; not so where the folder is sticky."""
    out = shared.open / "out"
    assert shared.run(BOB, "a.job", out)["status"] == "ok"
    assert shared.run(MALLORY, "b.job", out)["status"] == "ok"
    shared.open.chmod(0o1777)
    refused = shared.run(BOB, "c.job", out)
    assert refused["status"] == "error" and str(MALLORY) in refused["message"], refused
    assert out.read_text() == f"of {MALLORY}"
