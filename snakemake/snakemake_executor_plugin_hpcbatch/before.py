"""What is known of a workflow before any of it runs: what no site could ever run is refused then, once."""

from snakemake_interface_common.exceptions import WorkflowError

from .resources import Refusal, needs_of


def cap_threads(workflow, offer, telling):
    """Where all runs on this machine, jobs have no more threads than it has, as with Snakemake's `--cores`."""
    most = offer.local_cpus
    if not most:
        return
    try:
        resources = workflow.global_resources
        said = resources["_cores"]
        said = getattr(said, "value", said)  # Snakemake 8 has numbers
        if said is None or said > most:
            resources["_cores"] = most
    except (AttributeError, KeyError, TypeError) as error:  # another Snakemake: such a job is refused
        telling.cannot_tell(error)
        return
    telling.say(f"jobs run on this machine; rules that claim more than {most} threads get {most}.")


def refuse_hopeless(workflow, offer, default_memory_mb, telling, refusal_of):
    """`refusal_of(task)`: why the engine would never run it, or None.

    Raises WorkflowError where a rule can never run; with --keep-going it is only said, since others can."""
    reasons = _reasons(workflow, offer, default_memory_mb, refusal_of)
    if not reasons:
        return
    lines = [
        f"{'rule' if len(rules) == 1 else 'rules'} {', '.join(rules)}: {reason}." for reason, rules in reasons.items()
    ]
    if workflow.execution_settings.keep_going:
        for line in lines:
            telling.error(f"what can never run here: {line}")
        return
    raise WorkflowError(
        "\n".join(
            ["hpcbatch: nothing was started, because of what can never run here:", *("  " + line for line in lines)]
        )
    )


def refuse_local_containers(workflow):
    """Raises WorkflowError where a rule with a container would run without it."""
    from .containers import is_left_to_snakemake, local_rules_with

    rules = [] if is_left_to_snakemake(workflow) else local_rules_with(workflow)
    if rules:
        raise WorkflowError(
            f"hpcbatch: nothing was started: {', '.join(rules)} would run here, without {'its' if len(rules) == 1 else 'their'} "
            "container:, because of localrule; take that away, or add --sdm apptainer"
        )


def _reasons(workflow, offer, default_memory_mb, refusal_of):
    """{reason: [rules]}, by the first job of each rule."""
    reasons, seen = {}, set()
    for job in workflow.dag.needrun_jobs():
        if job.rule.name in seen or job.is_local:
            continue
        seen.add(job.rule.name)
        why = _why_never(job, offer, default_memory_mb, refusal_of)
        if why:
            reasons.setdefault(why, []).append(job.rule.name)
    return reasons


def _why_never(job, offer, default_memory_mb, refusal_of):
    try:
        known = {name: value for name, value in job.resources.items() if "<TBD>" not in str(value)}
        task, _ = needs_of(known, job.threads, offer, default_memory_mb)
    except Refusal as why:
        return str(why)
    except Exception:
        return None  # it may depend on files that are not there yet
    why = refusal_of(task)
    return why and (
        f"{why}; ask for less (--set-threads, --set-resources), or give the engine a site that has it (hpcbatch sites)"
    )
