"""The profile that `hpcbatch snakemake-profile` prints is one that Snakemake takes."""

import subprocess

from snakemake_bed import ROOT


def test_snakemake_runs_with_the_profile_alone(bed):
    folder = bed.engine.directory / ".config/snakemake/hpcbatch"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(bed.engine.ok("snakemake-profile"))
    bed.write(
        """
rule all:
    input: expand("{i}.txt", i=range(150))
rule one:
    output: "{i}.txt"
    shell: "echo {resources.mem_mb} {resources.runtime} > {output}"
"""
    )
    done = subprocess.run(
        [bed.python, "-m", "snakemake", "--profile", "hpcbatch"],
        cwd=bed.folder,
        env=bed.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (bed.folder / "149.txt").read_text() == "2000 60\n"
    assert "They ran in 1 batch job of hpcbatch." in done.stdout + done.stderr


def test_what_the_profile_says_to_install_is_there(bed):
    text = bed.engine.ok("snakemake-profile")
    said = [
        word for line in text.splitlines() if "pip install" in line for word in line.split("pip install")[1].split()
    ]
    assert said and all((ROOT / folder / "pyproject.toml").exists() for folder in said), text
    assert "\nretries: 0\n" in text
