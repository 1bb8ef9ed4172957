"""Workflows that both ways to run Nextflow are held to."""

# Each way in which a process may end, by its users' own words for it.
ENDS = """
process SPLIT {
    output: path 'part*'
    script: "seq 1 6 | split -l 1 - part"
}
process WORK {
    tag "$x"
    array 3
    memory { 100.MB * task.attempt }
    time '10m'
    errorStrategy 'retry'
    maxRetries 2
    input: path x
    output: path 'out.txt'
    script: "cat $x > out.txt; [ ${task.attempt} -gt 1 ] || ! grep -q 3 $x"
}
process GREEDY {
    memory { 60.MB * (task.attempt == 1 ? 1 : 10) }
    errorStrategy { task.exitStatus in 137..140 ? 'retry' : 'terminate' }
    script: "echo start; python3 -c 'x = bytearray(200_000_000); print(len(x))'"
}
process LATE {
    time '33 s'
    errorStrategy { task.exitStatus in 137..140 ? 'ignore' : 'terminate' }
    script: "sleep 600"
}
process FAILING {
    errorStrategy 'ignore'
    script: "echo to stderr >&2; exit 7"
}
process KILLED {
    errorStrategy 'ignore'
    script: 'kill -9 $PPID'
}
process GATHER {
    publishDir 'results'
    input: path 'in*'
    output: path 'all.txt'
    script: "cat in* | sort > all.txt"
}
workflow {
    WORK(SPLIT().flatten())
    GATHER(WORK.out.collect())
    GREEDY()
    LATE()
    FAILING()
    KILLED()
}
"""

# At most two of LIMITED run at a time: each notes how many it has seen.
LIMITED = """
process LIMITED {
    maxForks 2
    input: val x
    output: path 'seen'
    script: '''
    mkdir -p "$PWD/../../../running"; touch "$PWD/../../../running/$$"
    sleep 0.5
    ls "$PWD/../../../running" | wc -l > seen
    rm "$PWD/../../../running/$$"
    '''
}
workflow { LIMITED(channel.of(1..6)).collectFile(name: 'all', storeDir: '.') }
"""

# One that fails ends the run; what waits does not start.
FATAL = """
process FATAL {
    script: "echo about to fail; echo no such file >&2; exit 3"
}
workflow { FATAL() }
"""

ENDLESS = """
process ENDLESS {
    input: val x
    script: "sleep 600"
}
workflow { ENDLESS(channel.of(1, 2, 3)) }
"""


def rows_by_name(bed):
    """{name: [(status, exit)]} of a run with -with-trace, in the order in which they ended."""
    found = {}
    for row in bed.trace():
        found.setdefault(row["name"], []).append((row["status"], row["exit"]))
    return found


def must_end_as_users_know(bed):
    """ENDS, and what becomes of it when it is resumed."""
    bed.write(ENDS)
    bed.ok("-with-trace", "trace.txt")
    found = rows_by_name(bed)
    assert found["GREEDY"] == [("FAILED", "137"), ("COMPLETED", "0")], found
    assert found["LATE"] == [("FAILED", "140")], found
    assert found["FAILING"] == [("FAILED", "7")], found
    assert found["KILLED"] == [("FAILED", "137")], found
    work = {name: rows for name, rows in found.items() if name.startswith("WORK")}
    assert len(work) == 6 and work.pop("WORK (partac)") == [("FAILED", "1"), ("COMPLETED", "0")], found
    assert all(rows == [("COMPLETED", "0")] for rows in work.values()), found
    assert (bed.folder / "results/all.txt").read_text() == "1\n2\n3\n4\n5\n6\n"
    before = len(bed.tasks())
    bed.write(ENDS.replace("    LATE()\n    FAILING()\n    KILLED()\n", ""))
    printed = bed.ok("-resume")
    assert "Submitted process" not in printed, printed
    assert printed.count("Cached process") == 9, printed
    assert len(bed.tasks()) == before


def must_hold_max_forks(bed):
    bed.write(LIMITED)
    bed.ok()
    seen = [int(line) for line in (bed.folder / "all").read_text().split()]
    assert len(seen) == 6 and max(seen) <= 2, seen


def must_tell_of_a_failure(bed):
    bed.write(FATAL)
    code, printed = bed.run()
    assert code == 1, printed
    for words in ("Process `FATAL` terminated with an error exit status (3)", "about to fail", "no such file"):
        assert words in printed, printed


# As nf-core's pipelines are: samples in several steps, some of them as arrays, labels, retries with more memory, a report. 200 processes.
MANY = """
process PREPARE {
    tag "$sample"
    label 'small'
    input: val sample
    output: tuple val(sample), path("${sample}.txt")
    script: "echo $sample > ${sample}.txt"
}
process ALIGN {
    tag "$sample"
    label 'small'
    array 10
    memory { 50.MB * task.attempt }
    errorStrategy { task.exitStatus in ((130..145) + 104) ? 'retry' : 'finish' }
    maxRetries 2
    input: tuple val(sample), path(text)
    output: tuple val(sample), path("${sample}.aligned")
    script: \"\"\"
    [ ${task.attempt} -gt 1 ] || [ ${sample % 13} -ne 0 ] || exit 137
    sed s/^/aligned/ $text > ${sample}.aligned
    \"\"\"
}
process COUNT {
    tag "$sample"
    label 'small'
    publishDir 'results', mode: 'copy'
    input: tuple val(sample), path(aligned)
    output: path "${sample}.count"
    script: "wc -c < $aligned > ${sample}.count"
}
process REPORT {
    publishDir 'results', mode: 'copy'
    input: path '*'
    output: path 'report.txt'
    script: "cat *.count | wc -l > report.txt"
}
process VERSIONS {
    publishDir 'results', mode: 'copy'
    output: path 'versions.yml'
    script: "echo 'tool: 1' > versions.yml"
}
workflow {
    PREPARE(channel.of(1..66)) | ALIGN | COUNT
    REPORT(COUNT.out.collect())
    VERSIONS()
}
"""
MANY_FAIL_ONCE = 66 // 13


def many_must_be_there(bed):
    """All 200 of MANY have ended well, and nothing ran that need not."""
    rows = bed.trace()
    done = [row for row in rows if row["status"] == "COMPLETED"]
    failed = [row for row in rows if row["status"] == "FAILED"]
    assert len(done) == 200 and len(failed) == MANY_FAIL_ONCE, rows
    assert {row["exit"] for row in failed} == {"137"}
    assert (bed.folder / "results/report.txt").read_text().split() == ["66"]
    assert len(list((bed.folder / "results").iterdir())) == 68
