"""Makes private namespaces fit for a kubelet, says so, and holds them until its standard input ends.

Run as `unshare --net --mount --ipc -- python node_holder.py DIRECTORY`. A kubelet writes below /var/log and
/var/lib/kubelet and sets kernel parameters; here it sees empty file systems and parameters that already have the values
it wants, so that the machine stays as it is.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Final

READ_FLAGS: Final = 0x8913  # SIOCGIFFLAGS of linux/sockios.h
WRITE_FLAGS: Final = 0x8914  # SIOCSIFFLAGS
UP: Final = 0x1  # IFF_UP of linux/if.h

PRIVATE: Final = ("/var/log/pods", "/var/log/containers", "/var/lib/kubelet")
PARAMETERS: Final = {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}


def raise_loopback() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        answer = fcntl.ioctl(control, READ_FLAGS, struct.pack("16sH14x", b"lo", 0))
        flags = struct.unpack("16sH14x", answer)[1]
        fcntl.ioctl(control, WRITE_FLAGS, struct.pack("16sH14x", b"lo", flags | UP))


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def main(directory: Path) -> None:
    raise_loopback()
    for path in PRIVATE:
        os.makedirs(path, exist_ok=True)
        mount("-t", "tmpfs", "tmpfs", path)
    for name, value in PARAMETERS.items():
        wanted = directory / name.replace("/", ".")
        wanted.write_text(f"{value}\n")
        if Path("/proc/sys", name).exists():
            mount("--bind", str(wanted), f"/proc/sys/{name}")
    print("held", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
