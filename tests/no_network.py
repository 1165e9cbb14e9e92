"""A fence that ends a process, and every process that it starts, at the first attempt to reach another one by a socket.

Making a socket is no such attempt: urllib3 makes one when it is imported, to see whether the system knows IPv6. Names
are looked up over a connected socket too. Linux alone has the fence (seccomp(2)): ``python -m tests.no_network ARGUMENTS`` runs `rse` behind it.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys

ARCHITECTURES = {"x86_64": (0xC000003E, 42), "aarch64": (0xC00000B7, 203)}
"""The number of the architecture in linux/audit.h, and of the system call connect(2)."""

IS_AVAILABLE = sys.platform == "linux" and platform.machine() in ARCHITECTURES

_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_KILL, _ALLOW = 0x80000000, 0x7FFF0000


def forbid_network() -> None:
    """Put up the fence around this process; it can't be taken down."""
    architecture, connect = ARCHITECTURES[platform.machine()]
    program = [
        (_LOAD, 0, 0, 4),  # seccomp_data: the architecture
        (_JUMP_IF_EQUAL, 0, 3, architecture),
        (_LOAD, 0, 0, 0),  # the system call
        (_JUMP_IF_EQUAL, 1, 0, connect),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _KILL),
    ]
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: a count, padding, a pointer.
    header = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(program), ctypes.addressof(buffer)))
    library = ctypes.CDLL(None, use_errno=True)
    for arguments in ((_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, header, 0, 0)):
        if library.prctl(*arguments):
            raise OSError(ctypes.get_errno(), "no fence against the network")


if __name__ == "__main__":
    forbid_network()
    from rse_cli.__main__ import main

    main()
