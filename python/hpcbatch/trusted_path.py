"""Whether a path can be trusted: whether nobody but its user and root can put something else there.

The twin of core/posix/trusted_path.hpp, which has the rules as a table; tests/posix/trusted_paths.json holds both to the same cases.
"""

from __future__ import annotations

import os
import stat
import struct
from typing import NamedTuple

_MOST_LINKS = 40  # as the kernel does
_ROOT = 0
_WRITE = 2
# Tags of an ACL's entries (linux/posix_acl.h).
_USER, _OWN_GROUP, _GROUP, _MASK = 0x02, 0x04, 0x08, 0x10


class Untrusted(Exception):
    """In one sentence: which part of the path, whose it is, its mode, what another could do, what to do."""

    def __init__(self, path: str, text: str) -> None:
        super().__init__(text)
        self.path = path


class Account(NamedTuple):
    name: str
    first_group: int


class Group(NamedTuple):
    name: str
    members: list[str]


class Accounts:
    """Users and groups as this system knows them; None for those that it does not know."""

    def user(self, uid: int) -> Account | None:
        import pwd

        try:
            found = pwd.getpwuid(uid)
        except (KeyError, OSError):
            return None
        return Account(found.pw_name, found.pw_gid)

    def group(self, gid: int) -> Group | None:
        import grp

        try:
            found = grp.getgrgid(gid)
        except (KeyError, OSError):
            return None
        return Group(found.gr_name, list(found.gr_mem))

    def number_of(self, group: str) -> int | None:
        import grp

        try:
            return grp.getgrnam(group).gr_gid
        except (KeyError, OSError):
            return None


class _Part:
    """`path`: without links in what is above it."""

    def __init__(self, path: str, facts: os.stat_result) -> None:
        self.path, self.facts = path, facts
        self.mode = stat.S_IMODE(facts.st_mode)
        self.group_writes = bool(self.mode & stat.S_IWGRP)
        self.grants: list[tuple[int, int]] = []  # (tag, number) of others that may write by an ACL
        if stat.S_ISLNK(facts.st_mode):
            return
        try:
            entries = os.getxattr(path, "system.posix_acl_access", follow_symlinks=False)[4:]
        except OSError:  # it has none, or its file system knows none
            return
        acl = list(struct.iter_unpack("<HHI", entries[: len(entries) // 8 * 8]))
        mask = next((rights for tag, rights, _ in acl if tag == _MASK), 7)
        for tag, rights, number in acl:
            if tag == _OWN_GROUP:  # the mode's bits are the mask
                self.group_writes = bool(rights & mask & _WRITE)
            elif tag in (_USER, _GROUP) and rights & mask & _WRITE:
                self.grants.append((tag, number))


def _steps(path: str) -> list[str]:
    return [step for step in path.split("/") if step not in ("", ".")]


def _walk(path: str) -> tuple[list[_Part], bool, Untrusted | None]:
    """From / on, as the kernel passes them; whether the last one is what the path names; why nothing is known of what comes after."""
    at, ahead, links = "/", _steps(path), 0
    parts = [_Part(at, os.lstat(at))]
    while ahead:
        step = ahead.pop(0)
        if step == "..":
            at = os.path.dirname(at)
            continue
        next_one = os.path.join(at, step)
        try:
            facts = os.lstat(next_one)
        except FileNotFoundError:
            return parts, False, None
        except OSError as error:
            return parts, False, _unknown(next_one, error.strerror or str(error))
        parts.append(_Part(next_one, facts))
        if not stat.S_ISLNK(facts.st_mode):
            at = next_one
            if ahead and not stat.S_ISDIR(facts.st_mode):
                return parts, False, _unknown(next_one, "it is no folder")
            continue
        links += 1
        if links > _MOST_LINKS:
            return parts, False, _unknown(next_one, "links lead in a circle")
        target = os.readlink(next_one)
        if target.startswith("/"):
            at = "/"
        ahead = _steps(target) + ahead
    # Dots or a link to / lead back to what was passed as a folder above.
    parts.append(next(part for part in reversed(parts) if part.path == at))
    return parts, True, None


def _unknown(path: str, why: str) -> Untrusted:
    return Untrusted(path, f"{path} cannot be used: {why}; name a path whose every part is there or can be made")


class _Judge:
    def __init__(self, uid: int, trusted: int | None, accounts: Accounts) -> None:
        self._uid, self._trusted, self._accounts = uid, trusted, accounts

    def of(self, part: _Part, is_above: bool) -> str | None:
        """What is to be said of a part that is used; `is_above`: what is looked for lies in it. Raises Untrusted."""
        owner = part.facts.st_uid
        if not self._is_trusted_user(owner):
            self._refuse(
                part, self._user_text(owner), is_above, "use a place of your own, or ask for one that belongs to root"
            )
        if stat.S_ISLNK(part.facts.st_mode) or (is_above and part.mode & stat.S_ISVTX):
            return None
        if part.mode & stat.S_IWOTH:
            self._refuse(part, "everybody", is_above, f"run: chmod o-w {part.path}")
        said = None
        for tag, number in part.grants:
            if tag == _USER and not self._is_trusted_user(number):
                who = "by an ACL " + self._user_text(number)
                self._refuse(part, who, is_above, f"run: setfacl -x u:{number} {part.path}")
            if tag == _GROUP and not self._is_trusted_group(number):
                said = self._of_group(part, number, is_above, f"run: setfacl -x g:{number} {part.path}")
        if said is None and part.group_writes and not self._is_trusted_group(part.facts.st_gid):
            said = self._of_group(part, part.facts.st_gid, is_above, f"run: chmod g-w {part.path}")
        return said

    def _is_trusted_user(self, uid: int) -> bool:
        if uid in (_ROOT, self._uid):
            return True
        who = self._accounts.user(uid)
        group = None if self._trusted is None else self._accounts.group(self._trusted)
        return who is not None and group is not None and (who.first_group == self._trusted or who.name in group.members)

    def _is_trusted_group(self, gid: int) -> bool:
        group = self._accounts.group(gid)
        return (
            (group is not None and gid == self._trusted)
            or group is not None
            and any(self._is_of_alone(gid, group, uid) for uid in (self._uid, _ROOT))
        )

    def _is_of_alone(self, gid: int, group: Group, uid: int) -> bool:
        """Another's first group may be any: that it is the user's own shows in its name."""
        who = self._accounts.user(uid)
        return who is not None and (gid, group.name) == (who.first_group, who.name) and set(group.members) <= {who.name}

    def _of_group(self, part: _Part, gid: int, is_above: bool, remedy: str) -> str:
        group = self._accounts.group(gid)
        name = f"number {gid} (it has no name)" if group is None else group.name
        text = self._text(part, f"the members of group {name}", is_above, remedy)
        if not stat.S_ISDIR(part.facts.st_mode):
            raise Untrusted(part.path, text)
        return text

    def _user_text(self, uid: int) -> str:
        who = self._accounts.user(uid)
        return f"user {uid}" if who is None else f"user {uid} ({who.name})"

    def _text(self, part: _Part, who: str, is_above: bool, remedy: str) -> str:
        if stat.S_ISLNK(part.facts.st_mode):
            could = "could lead it elsewhere"
        elif not stat.S_ISDIR(part.facts.st_mode):
            could = "could write into it what you then obey or run"
        elif is_above:
            could = "could rename what lies in it and put something else there"
        else:
            could = "could put files there that you then obey or run"
        owner = self._user_text(part.facts.st_uid)
        return f"{part.path} (of {owner}, mode {part.mode:04o}): {who} {could}; {remedy}"

    def _refuse(self, part: _Part, who: str, is_above: bool, remedy: str) -> None:
        raise Untrusted(part.path, self._text(part, who, is_above, remedy))


def check(
    path: str,
    wants: str = "folder",
    *,
    uid: int | None = None,
    trust_group: str | None = None,
    accounts: Accounts | None = None,
) -> str | None:
    """A sentence to be said where the path may be used although a group can write on its way; None where nothing is to be said.

    `path`: absolute; what is not there yet is judged by what is above it. `wants`: "folder" or "file". `uid`: for whom (this
    process's user). Raises Untrusted. Asks the system for users and groups; any thread."""
    accounts = accounts or Accounts()
    trusted = None if trust_group is None else accounts.number_of(trust_group)
    if trust_group is not None and trusted is None:
        raise Untrusted("", f"there is no group '{trust_group}' here; `getent group` lists those there are")
    judge = _Judge(os.geteuid() if uid is None else uid, trusted, accounts)
    parts, is_whole, trouble = _walk(path)
    said = None
    for part in parts:
        found = judge.of(part, is_above=part is not parts[-1] or not is_whole)
        said = said or found
    if trouble is not None:
        raise trouble
    is_wanted = stat.S_ISREG if wants == "file" else stat.S_ISDIR
    if is_whole and not is_wanted(parts[-1].facts.st_mode):
        raise Untrusted(parts[-1].path, f"{parts[-1].path} is no {wants}; name one")
    return said
