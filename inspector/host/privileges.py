"""Drop root privileges for good: a proxy that was started as root continues as another user.

This happens before a key is read or a port is opened. Keys, CA bundle and CRL are read again whenever they are renewed,
so the user must be able to read them at any time: what works at the start must not fail at the first renewal. The user
therefore needs a group that may read Puppet's keys (mode 0640), a directory of its own for captures, and a port from
1024 on.
"""

from __future__ import annotations

import os
import pwd

from inspector.errors import InspectorError


def drop(user: str) -> None:
    """Become ``user`` with all its groups, for good.

    Files that this process creates from now on are accessible to that user only.
    Raises InspectorError if there is no such user, if it is root or of root's group, or if this process may not
    become it.
    """
    try:
        entry = pwd.getpwnam(user)
    except (KeyError, ValueError) as error:  # ValueError: a NUL in the name
        raise InspectorError(
            f"There is no user {user!r}.",
            "Create one that may read Puppet's keys: useradd --system --groups puppet NAME.",
        ) from error
    uid, gid = entry.pw_uid, entry.pw_gid
    groups = os.getgrouplist(user, gid)
    if uid == 0 or 0 in groups:
        raise InspectorError(f"User {user} has root privileges, so none would be dropped.", "Choose another user.")
    if os.geteuid() == 0:
        os.setgroups(groups)
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    elif os.geteuid() != uid:
        raise InspectorError(f"Only root can become user {user}.", f"Start the proxy as root or as {user}.")
    if os.getresuid() != (uid, uid, uid) or os.getresgid() != (gid, gid, gid) or _can_go_back():
        raise InspectorError(f"Root privileges could not be dropped for user {user}.", f"Start the proxy as {user}.")
    os.umask(0o077)
    os.environ.update(HOME=entry.pw_dir, USER=user, LOGNAME=user)


def _can_go_back() -> bool:
    try:
        os.setuid(0)
    except PermissionError:
        return False
    return True
