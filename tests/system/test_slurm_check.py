"""`sites check` on a real SLURM: what it proposes is what there is, and an engine can work with it."""

import textwrap

from slurm_site import SMALL, SlurmSite


def checked(site):
    site.ok("engine", "start")
    (answer,) = site.json("sites", "check", "cluster")
    assert answer["ok"], answer
    return answer


def test_the_proposal_has_the_partitions_and_an_engine_works_with_it(slurm):
    with SlurmSite(slurm) as site:
        proposal = checked(site)["proposal"]
        text = site.ok("sites", "check", "cluster")
        assert text.endswith(f"\nproposed entry:\n{proposal}"), text
        site.ok("engine", "stop", "--now")
        site.configure("sites:\n" + textwrap.indent(proposal, "  "))
        site.ok("engine", "start")
        (told,) = site.json("sites", "show", "cluster")
        assert told["workspace"] == str(site.directory / "w")
        shapes = {shape["name"]: shape for shape in told["shapes"]}
        assert set(shapes) == {"cpu", "gpu-v100", "gpu-a100"}, proposal
        assert shapes["gpu-v100"]["partition"] == "gpu" and shapes["gpu-v100"]["gpus"] == {"v100": 2}, proposal
        assert shapes["gpu-a100"]["gpus"] == {"a100": 1}, proposal
        assert shapes["cpu"]["cpus"] == 4 and shapes["cpu"]["walltime"] == 24 * 3600, proposal
        task = site.submit("--gpus", "a100:1", *site.say())
        assert site.wait(task) == 0, site.log_end()
        assert site.lines() == [f"{task}"]
        (allocation,) = site.json("allocations")
        assert allocation["shape"] == "gpu-a100", allocation


def test_ways_of_links_are_tried_and_leave_nothing_behind(slurm):
    with SlurmSite(slurm, SMALL, link="spool") as site:
        checks = {check["check"]: check for check in checked(site)["checks"]}
        assert "a route from the nodes to 127.0.0.1" in checks["link direct"]["text"], checks
        assert "`link` leaves it out" in checks["link relay"]["text"], checks
        assert "an exchange by files works" in checks["link spool"]["text"], checks
        left = sorted(str(entry.relative_to(site.directory / "w")) for entry in (site.directory / "w").rglob("*"))
        assert not [path for path in left if path.split("/")[0] in ("check", "relay", "spool")], left


def test_modules_are_listed_as_a_batch_script_finds_them(slurm):
    with SlurmSite(slurm, SMALL) as site:
        checks = {check["check"]: check for check in checked(site)["checks"]}
        text = checks["modules"]["text"]
        assert checks["modules"]["ok"] and ("no command 'module'" in text or "'module load" in text), checks


def test_what_is_wrong_is_said_beside_the_proposal(slurm):
    with SlurmSite(slurm, SMALL | {"cpus": 64}, SMALL | {"name": "lost", "partition": "nowhere"}) as site:
        site.ok("engine", "start")
        refused = site.verb("sites", "check", "cluster")
        assert refused.code == 1, refused
        assert "asks for 64 cpus of 4" in refused.out and "there is no partition 'nowhere'" in refused.out, refused
        assert "proposed entry:" in refused.out, refused


def test_options_are_tried_by_slurms_own_test(slurm):
    with SlurmSite(slurm, SMALL) as site:
        checks = {check["check"]: check for check in checked(site)["checks"]}
        assert "to start at" in checks[f"submit {SMALL['name']}"]["text"], checks
        assert site.living_jobs() == []
    with SlurmSite(slurm, SMALL, options=["--reservation=none-of-ours"]) as site:
        site.ok("engine", "start")
        refused = site.verb("sites", "check", "cluster")
        assert refused.code == 1 and "would not be taken" in refused.out and "reservation" in refused.out, refused


def test_a_site_is_added_once_it_was_shown_and_agreed_to(slurm):
    with SlurmSite(slurm) as site:
        file = site.directory / "new.yaml"
        file.write_text("# mine\n")
        words = ["sites", "add", "second", "--workspace", site.directory / "second", "--config", file]
        shown = site.verb(*words)
        assert (
            shown.code == 1
            and "- name: second\n  scheduler: slurm\n" in shown.out
            and "nobody can be asked" in shown.err
        ), shown
        assert file.read_text() == "# mine\n" and not (site.directory / "second").exists()
        assert site.ok(*words, "--yes") == shown.out
        assert file.read_text() == "# mine\nsites:\n" + textwrap.indent(shown.out, "  ")
        again = site.verb(*words, "--yes")
        assert again.code == 2 and "has a site 'second'" in again.err, again
        site.ok("engine", "start", "--config", file)
        assert {shape["name"] for shape in site.json("sites", "show", "second")[0]["shapes"]} == {
            "cpu",
            "gpu-v100",
            "gpu-a100",
        }
        task = site.submit(*site.say())
        assert site.wait(task) == 0, site.log_end()
