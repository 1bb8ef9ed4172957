"""What holds for every test."""

import signal


def pytest_configure():
    # Who is started in the background inherits an interrupt that means nothing, and so would every process of a test.
    signal.signal(signal.SIGINT, signal.default_int_handler)
