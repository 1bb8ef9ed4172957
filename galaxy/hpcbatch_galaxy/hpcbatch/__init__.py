"""Python's side of hpcbatch: the standard library only, so that it installs into anybody's environment.

    client        speaks to the engine's socket
    fork_service  a service that has its imports done and forks a process per task
"""
