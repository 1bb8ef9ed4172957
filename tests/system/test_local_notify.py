"""Who asked for it is told when a submission has ended: by mail, by a command, by a webhook."""

import email
import http.server
import json
import os
import pathlib
import threading

import pytest
from engine_at_home import EngineAtHome
from patience import wait_until


def script(folder, name, text):
    file = folder / name
    file.write_text("#!/bin/sh\n" + text)
    file.chmod(0o755)
    return file


@pytest.fixture()
def told(tmp_path):
    """A folder in which a program leaves what it was told, and that program."""
    tmp_path.chmod(0o755)
    out = tmp_path / "told"
    out.mkdir()
    program = script(
        tmp_path,
        "tell",
        f"n=$(mktemp -p {out} .XXXXXX)\ncat > $n\nenv | grep ^HPCBATCH_NOTICE= > {out}/env\nmv $n {out}/$(date +%s%N).json\n",
    )
    return out, program


def messages(out):
    return [json.loads(file.read_text()) for file in sorted(out.glob("*.json"))]


def one_message(out):
    return wait_until(lambda: messages(out), 60, "a message")[0]


@pytest.fixture()
def home():
    with EngineAtHome() as home:
        home.ok("engine", "start")
        yield home


def test_a_command_hears_the_counts_and_the_first_failure_once(home, told):
    out, program = told
    line = 'test "$HPCBATCH_TASK_INDEX" != 2 || { echo bad >&2; exit 3; }'
    array = home.submit(
        "--notify",
        f"command:{program}",
        "--name",
        'fit\n"$(x)',
        "--retries",
        "0",
        "--array",
        "1-4",
        "--",
        "sh",
        "-c",
        line,
    )
    home.wait(array)
    (one,) = one_message(out)["submissions"]
    assert one["id"] == array and one["state"] == "failed" and one["total"] == 4
    assert one["counts"] == {"done": 3, "failed": 1, "cancelled": 0}
    assert one["first_failure"]["id"] == f"{array}.2" and one["first_failure"]["exit_code"] == 3
    assert "1 of 4 tasks failed" in (out / "env").read_text()
    wait_until(lambda: f"told command:{program}" in home.log_end(), 60, "the engine's note of it")
    # Neither another end nor another engine tells it again.
    home.kill_engine()
    home.ok("engine", "start")
    home.wait(home.submit("--", "true"))
    assert len(messages(out)) == 1


def test_only_what_failed_is_told_where_that_is_asked_for(home, told):
    out, program = told
    good = home.submit("--notify", f"failed:command:{program}", "--", "true")
    home.wait(good)
    bad = home.submit("--notify", f"failed:command:{program}", "--retries", "0", "--", "false")
    home.wait(bad)
    assert [one["id"] for one in one_message(out)["submissions"]] == [bad]


def test_a_file_of_tasks_is_told_once_with_all_of_them(home, told, tmp_path):
    out, program = told
    tasks = [{"command": ["true"], "notify": [f"command:{program}"]}] + [{"command": ["sleep", "1"]}] * 2
    file = tmp_path / "tasks.json"
    file.write_text("\n".join(json.dumps(task) for task in tasks))
    home.ok("submit", "--file", file)
    (one,) = one_message(out)["submissions"]
    assert one["counts"]["done"] == one["total"] == 3


def test_what_ended_while_no_engine_ran_is_told_by_the_next(home, told):
    out, program = told
    task = home.submit("--notify", f"command:{program}", "--", "sleep", "2")
    wait_until(lambda: home.show(task)["state"] == "running", 60, "the task")
    home.kill_engine()
    assert not messages(out)
    home.ok("engine", "start")
    assert one_message(out)["submissions"][0]["id"] == task


def test_a_command_that_hangs_holds_up_nobody(home, told, tmp_path):
    out, program = told
    slow = script(tmp_path, "slow", f"touch {tmp_path}/began; sleep 600\n")
    home.wait(home.submit("--notify", f"command:{slow}", "--", "true"))
    wait_until((tmp_path / "began").exists, 60, "the slow one")
    home.wait(home.submit("--notify", f"command:{program}", "--", "true"))
    one_message(out)
    # It ends with the engine: the fixture looks for what is left.


def test_mail_goes_by_sendmail(tmp_path):
    out = tmp_path / "mail"
    tmp_path.chmod(0o755)
    script(tmp_path, "sendmail", f'echo "$@" > {out}.args; cat > {out}.part; mv {out}.part {out}\n')
    with EngineAtHome(PATH=f"{tmp_path}:{os.environ['PATH']}") as home:
        batch = tmp_path / "job.sh"
        batch.write_text(
            "#!/bin/sh\n#SBATCH --mail-type=END,FAIL\n#SBATCH --mail-user=me@example.org\n#SBATCH -J fit\ntrue\n"
        )
        home.wait(home.submit(batch))
        wait_until(out.exists, 60, "the mail")
        mail = email.message_from_string(out.read_text())
        assert mail["To"] == "me@example.org" and "(fit) done: of 1 task 1 done" in mail["Subject"]
        assert pathlib.Path(f"{out}.args").read_text() == "-oi -t\n"


def test_what_cannot_be_told_is_said_and_tried_again(home, tmp_path):
    script(tmp_path, "fails", "echo no such user >&2; exit 67\n")
    for program in ("/nowhere/told", f"{tmp_path}/fails"):
        home.wait(home.submit("--notify", f"command:{program}", "--", "true"))
        wait_until(lambda: f"cannot tell command:{program}" in home.log_end(), 60, "a word in the log")
    log = home.log_end()
    assert "not found" in log and "exit code 67: no such user" in log and "trying again in 60 s" in log


def test_a_webhook_gets_json(home):
    got = []

    class Hook(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            got.append((self.headers["Content-Type"], json.loads(self.rfile.read(int(self.headers["Content-Length"])))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Hook)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    task = home.submit("--notify", f"http://127.0.0.1:{server.server_port}/hook?key=a%22b", "--", "true")
    home.wait(task)
    wait_until(lambda: got, 60, "the webhook")
    server.shutdown()
    assert got[0][0] == "application/json" and got[0][1]["submissions"][0]["id"] == task
    assert "hook?key" not in home.log_end()


def test_a_default_holds_for_what_people_submit_and_says_nobody(told):
    out, program = told
    with EngineAtHome(config=f"notify: ['command:{program}']\n") as home:
        home.wait(home.submit("--notify", "none", "--", "true"))
        task = home.submit("--", "true")
        home.wait(task)
        assert [one["id"] for one in one_message(out)["submissions"]] == [task]


@pytest.mark.parametrize("what", ["me@x.org", "mail:a@b,c@d", "command:told.sh", "http://example.org/", "ftp://x"])
def test_what_tells_nobody_is_refused(home, what):
    result = home.verb("submit", "--notify", what, "--", "true")
    assert result.code == 2 and "notify" in result.err and what in result.err
