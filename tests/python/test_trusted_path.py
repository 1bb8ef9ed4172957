"""The guard of trusted paths, with the table that the C++ guard is tried with too."""

import json
import os
import pathlib
import struct
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from hpcbatch import trusted_path  # noqa: E402

pytestmark = pytest.mark.pure

TABLE = json.loads((ROOT / "tests/posix/trusted_paths.json").read_text())
USERS = {name: user["uid"] for name, user in TABLE["users"].items()}
GROUPS = {name: group["gid"] for name, group in TABLE["groups"].items()}


def number(name, known):
    return known[name] if name in known else int(name)


class Listed(trusted_path.Accounts):
    def user(self, uid):
        return next(
            (
                trusted_path.Account(name, GROUPS[user["primary"]])
                for name, user in TABLE["users"].items()
                if user["uid"] == uid
            ),
            None,
        )

    def group(self, gid):
        return next(
            (
                trusted_path.Group(name, group["members"])
                for name, group in TABLE["groups"].items()
                if group["gid"] == gid
            ),
            None,
        )

    def number_of(self, group):
        return GROUPS.get(group)


def set_acl(path, entries):
    tags = {"user": (1, 2), "group": (4, 8), "mask": (16, 16), "other": (32, 32)}
    data = struct.pack("<I", 2)
    for entry in entries.split(","):
        kind, name, rights = entry.split(":")
        bits = sum(bit for bit, letter in ((4, "r"), (2, "w"), (1, "x")) if letter in rights)
        known = USERS if kind == "user" else GROUPS
        data += struct.pack("<HHI", tags[kind][bool(name)], bits, number(name, known) if name else 0xFFFFFFFF)
    os.setxattr(path, "system.posix_acl_access", data)


def lay_out(setup, base):
    for kind, name, *rest in setup:
        path = base / name
        if kind == "acl":
            set_acl(path, rest[0])
        elif kind == "link":
            target, owner = rest
            os.symlink(f"{base}{target}" if target.startswith("/") else target, path)
            os.lchown(path, USERS[owner], 0)
        else:
            {"dir": os.mkdir, "pipe": os.mkfifo, "file": lambda made: made.write_text("text\n")}[kind](path)
            owner, group, mode = rest
            os.chown(path, USERS[owner], number(group, GROUPS))
            os.chmod(path, int(mode, 8))


@pytest.fixture
def base(tmp_path_factory):
    """A folder of root's in a place that is trusted itself."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    made = tmp_path_factory.mktemp("trusted")
    made.chmod(0o755)
    return made


@pytest.mark.parametrize("case", TABLE["cases"], ids=lambda case: case["name"])
def test_every_case_of_the_table(case, base):
    lay_out(case["setup"], base)
    asked = f"{base}/{case['path']}"
    options = {"uid": USERS["self"], "trust_group": case.get("trust_group"), "accounts": Listed()}
    if case["verdict"] == "refused":
        with pytest.raises(trusted_path.Untrusted) as refused:
            trusted_path.check(asked, case["wants"], **options)
        assert refused.value.path == f"{base}/{case['names']}" and refused.value.path in str(refused.value)
        return
    said = trusted_path.check(asked, case["wants"], **options)
    if case["verdict"] == "said":
        assert said.startswith(f"{base}/{case['names']} (of user ")
    else:
        assert said is None


def test_a_refusal_says_whose_it_is_what_could_be_done_and_what_helps(base):
    (base / "a").mkdir()
    (base / "a").chmod(0o777)
    with pytest.raises(trusted_path.Untrusted) as refused:
        trusted_path.check(f"{base}/a/new")
    assert str(refused.value) == (
        f"{base}/a (of user 0 (root), mode 0777): everybody could rename what lies in it and put something else there;"
        f" run: chmod o-w {base}/a"
    )
    with pytest.raises(trusted_path.Untrusted, match="no group 'typo'"):
        trusted_path.check(str(base), trust_group="typo")
