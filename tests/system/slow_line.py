#!/usr/bin/python3
"""A line between two network devices on which each packet takes its time and some are lost; needs no support of the kernel but TUN.

  slow_line.py DEVICE DEVICE SECONDS SEED   makes both devices, and passes on between them what is sent to one of them, so many
                                            seconds later. Each line of standard input is done and answered by `done`:
                                            `lose SHARE` of the packets from now on, `stop` passing any on, `pass` them on again.
                                            Ends with its standard input.
"""

import collections
import contextlib
import fcntl
import os
import random
import selectors
import struct
import subprocess
import sys
import time

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
LARGEST = 65536


class SlowLine:
    """The caller gives the devices their addresses and puts them where they belong; they go when the line is closed."""

    def __init__(self, one, other, round_trip, seed=1):
        self._process = subprocess.Popen(
            [sys.executable, __file__, one, other, str(round_trip / 2), str(seed)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._must_say("done")

    def lose(self, share):
        """So large a share of all packets, drawn by the seed."""
        self._order(f"lose {share}")

    @contextlib.contextmanager
    def half_open(self):
        """No packet arrives, and nobody is told."""
        self._order("stop")
        try:
            yield
        finally:
            self._order("pass")

    def close(self):
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()

    def _order(self, text):
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        self._must_say("done")

    def _must_say(self, text):
        said = self._process.stdout.readline().strip()
        assert said == text, f"the slow line: {said or 'it has ended; see its standard error'}"


def _device(name):
    try:
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    except OSError as error:
        sys.exit(
            f"cannot make the network device {name}: {error}; /dev/net/tun (mknod c 10 200) and CAP_NET_ADMIN are needed"
        )
    return descriptor


class _Forwarder:
    def __init__(self, one, other, delay, seed):
        self.other = {one: other, other: one}
        self.delay = delay
        self.random = random.Random(seed)
        self.share = 0.0
        self.passes = True
        self.under_way = collections.deque()  # (due, device, packet), the same delay for each: in order

    def take(self, device):
        with contextlib.suppress(BlockingIOError):
            while True:
                packet = os.read(device, LARGEST)
                if self.passes and self.random.random() >= self.share:
                    self.under_way.append((time.monotonic() + self.delay, self.other[device], packet))

    def deliver(self):
        """Seconds until there is more to do; none: nothing is under way."""
        while self.under_way and (left := self.under_way[0][0] - time.monotonic()) <= 0:
            _, device, packet = self.under_way.popleft()
            with contextlib.suppress(OSError):  # the other side is down or full: lost
                os.write(device, packet)
        return left if self.under_way else None

    def obey(self, verb, *words):
        if verb == "lose":
            self.share = float(words[0])
        else:
            self.passes = {"stop": False, "pass": True}[verb]
            self.under_way.clear()


def main(one, other, delay, seed):
    devices = _device(one), _device(other)
    forwarder = _Forwarder(*devices, float(delay), int(seed))
    with selectors.DefaultSelector() as selector:
        for device in devices:
            selector.register(device, selectors.EVENT_READ)
        selector.register(sys.stdin.fileno(), selectors.EVENT_READ)
        print("done", flush=True)
        orders = b""
        while True:
            for key, _ in selector.select(forwarder.deliver()):
                if key.fd in devices:
                    forwarder.take(key.fd)
                    continue
                said = os.read(key.fd, 4096)
                if not said:
                    return
                *lines, orders = (orders + said).split(b"\n")
                for line in lines:
                    forwarder.obey(*line.decode().split())
                    print("done", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
