"""What holds for every test, and how tests are spread over the workers of one run."""

import pathlib
import signal
import threading

import pytest

HERE = pathlib.Path(__file__).parent

# Modules whose tests share a bed that is dear to start: one worker has them all.
ONE_BED = {
    "galaxy/test_containers.py",
    "galaxy/test_far.py",
    "galaxy/test_jobs.py",
    "galaxy/test_restart.py",
    "galaxy/test_slurm.py",
    "snakemake/test_matrix.py",
    "snakemake/test_pure.py",
    "system/test_slurm_choices.py",
}

# Seconds on an idle machine of what takes longest, a whole module where it has one bed: begun last it would be waited for alone.
SECONDS = {
    "galaxy/test_jobs.py": 205,
    "galaxy/test_restart.py": 195,
    "galaxy/test_slurm.py": 190,
    "galaxy/test_containers.py": 135,
    "galaxy/test_far.py": 110,
    "snakemake/test_matrix.py": 60,
    "test_a_login_that_hangs_is_given_up": 155,
    "test_the_line_is_cut_for_a_while": 100,
    "test_the_line_is_half_open_for_a_while": 90,
    "test_thousands_with_files_of_their_own_and_one_for_all": 60,
    "test_a_task_that_a_pilots_end_cut_runs_again_where_more_time_is_left": 55,
    "test_a_service_that_leaks_is_renewed_among_many_tasks": 50,
    "test_a_node_daemon_lost_while_the_pilot_lives": 40,
    "test_the_service_is_killed_and_stopped_among_many_tasks": 35,
    "test_a_node_lost": 35,
    "test_a_batch_job_cancelled_by_somebody_else": 35,
    "test_where_nothing_may_connect_a_pilot_finds_the_files": 30,
    "test_a_quiet_pilot_is_found_again_by_files": 30,
    "test_thousands_of_tasks_over_a_long_line_which_then_loses_packets": 30,
    "test_a_limit_of_the_account_is_not_run_against": 25,
    "test_a_workspace_that_is_away_is_waited_for": 20,
    "test_the_answer_to_a_submit_lost": 20,
    "test_the_login_nodes_sshd_is_killed": 20,
    "test_a_run_goes_on_after_a_kill_at": 15,
    "test_killed_at": 10,
}


def pytest_configure(config):
    config.addinivalue_line("markers", "alone: its result is a time, so nothing may run beside it")
    config.addinivalue_line("markers", "xdist_group(name): tests that one worker has")
    # Who is started in the background inherits an interrupt that means nothing, and so would every process of a test.
    # Workers inherit it from who starts them.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in its own
def pytest_collection_modifyitems(items):
    for item in items:
        module = item.path.relative_to(HERE).as_posix()
        if module in ONE_BED:
            item.add_marker(pytest.mark.xdist_group(module))
    items.sort(key=_seconds, reverse=True)


def _seconds(item):
    module = item.path.relative_to(HERE).as_posix()
    return SECONDS.get(module if module in ONE_BED else item.originalname, 0)
