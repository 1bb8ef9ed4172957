"""The wire of pilots as an attacker speaks it who has got hold of one allocation's file, and nothing of ours but that."""

import ctypes
import ctypes.util
import hashlib
import socket
import struct
import time

SODIUM = ctypes.CDLL(ctypes.util.find_library("sodium") or "libsodium.so.23")
SEAL, HEADER, STATE = 17, 24, 52


def varint(number):
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])


def message(*fields):
    """Of (number, value): an int, bytes, str, or a message made so."""
    parts = []
    for number, value in fields:
        if isinstance(value, int):
            parts += varint(number << 3), varint(value & (1 << 64) - 1)
        else:
            value = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
            parts += varint(number << 3 | 2), varint(len(value)), value
    return b"".join(parts)


def attempt(array, epoch, index=0, number=1):
    return message((1, array), (2, index), (3, number), (4, epoch))


def registration(node="node", capacity=(("cpus", 1),), held=(), incarnation=1):
    amounts = [(4, message((1, name), (2, round(amount * 10_000)))) for name, amount in capacity]
    times = [(5, 60_000), (10, incarnation)]
    return message((1, message((1, "1"), (2, node), *amounts, *times, *((6, one) for one in held))))


def keyed(key, *parts):
    digest = hashlib.blake2b(digest_size=32, key=key)
    for part in parts:
        digest.update(part)
    return digest.digest()


class HostilePilot:
    """A link that stands. `file` is the allocation's pilot file; any rank can be claimed with it."""

    def __init__(self, file, rank=0):
        facts = {}
        for line in file.read_text().splitlines():
            word, _, rest = line.partition(" ")
            facts.setdefault(word, rest)
        way, place, *port = facts["address"].split(" ")
        if way == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(place)
        else:
            self.socket = socket.create_connection((place, int(port[0])), timeout=60)
        own, public, shared = (ctypes.create_string_buffer(32) for _ in range(3))
        SODIUM.randombytes_buf(own, ctypes.c_size_t(32))
        SODIUM.crypto_scalarmult_base(public, own)
        hello = b"hpcbatch" + struct.pack("<HH16sI", 1, 1, facts["allocation"].encode(), rank) + public.raw
        self.socket.sendall(hello)
        answer = self.receive(48)
        assert SODIUM.crypto_scalarmult(shared, own, answer[16:]) == 0
        key = keyed(bytes.fromhex(facts["key"]), b"hpcbatch pilot key 1 %d" % rank)
        self.sealing = ctypes.create_string_buffer(STATE)
        header = ctypes.create_string_buffer(HEADER)
        to_engine = keyed(key, b"hpcbatch wire: pilot to engine", shared.raw, hello, answer)
        SODIUM.crypto_secretstream_xchacha20poly1305_init_push(self.sealing, header, to_engine)
        self.socket.sendall(header.raw + self.sealed(b""))

    def sealed(self, text):
        length = struct.pack("<I", len(text) + SEAL)
        out = ctypes.create_string_buffer(len(text) + SEAL)
        size = ctypes.c_ulonglong
        SODIUM.crypto_secretstream_xchacha20poly1305_push(
            self.sealing, out, None, text, size(len(text)), length, size(len(length)), ctypes.c_ubyte(0)
        )
        return length + out.raw

    def receive(self, count):
        out = b""
        while len(out) < count:
            more = self.socket.recv(count - len(out))
            if not more:
                raise ConnectionError("the engine has closed the link")
            out += more
        return out

    def say(self, *messages):
        for one in messages:
            self.socket.sendall(self.sealed(one))

    def is_put_out(self, within=30):
        """Waits for the engine to close the link."""
        end = time.monotonic() + within
        while time.monotonic() < end:
            self.socket.settimeout(max(0.1, end - time.monotonic()))
            try:
                if not self.socket.recv(65536):
                    return True
            except TimeoutError:
                return False
            except ConnectionError:
                return True
        return False

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
