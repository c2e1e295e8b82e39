"""The images that every fakecri knows: the pause images, what Kubernetes' and CRI's own test suites use, common names.

Each row says what can be observed of the image through CRI or from inside a container; sizes are of the order of the
real ones. All can be pulled; the pause image that runtimes of today start pods with is on the node, and pinned.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from fakecri.core.catalogue import DEFAULT_PATH, MADE_UP_PROGRAM, Catalogue, ImageConfig, ImageSource

if TYPE_CHECKING:
    from collections.abc import Mapping

#: The pause image that is there at the start.
PAUSE_IMAGE: Final = "registry.k8s.io/pause:3.10"

_E2E = "registry.k8s.io/e2e-test-images"
_CRI_TOOLS = "gcr.io/k8s-staging-cri-tools"
_HUB = "docker.io/library"

_APPLETS = """
    [ [[ acpid add-shell addgroup adduser adjtimex ar arch arp arping ascii ash awk base32 base64 basename bc beep
    blkdiscard blkid blockdev bootchartd brctl bunzip2 bzcat bzip2 cal cat chat chattr chgrp chmod chown chpasswd chpst
    chroot chrt chvt cksum clear cmp comm conspy cp cpio crc32 crond crontab cryptpw cttyhack cut date dc dd deallocvt
    delgroup deluser depmod devmem df dhcprelay diff dirname dmesg dnsd dnsdomainname dos2unix dpkg dpkg-deb du dumpkmap
    dumpleases echo ed egrep eject env envdir envuidgid ether-wake expand expr factor fakeidentd fallocate false fatattr
    fbset fbsplash fdflush fdformat fdisk fgconsole fgrep find findfs flock fold free freeramdisk fsck fsck.minix
    fsfreeze fstrim fsync ftpd ftpget ftpput fuser getfattr getopt getty grep groups gunzip gzip halt hd hdparm head
    hexdump hexedit hostid hostname httpd hush hwclock i2cdetect i2cdump i2cget i2cset i2ctransfer id ifconfig ifdown
    ifenslave ifplugd ifup inetd init insmod install ionice iostat ip ipaddr ipcalc ipcrm ipcs iplink ipneigh iproute
    iprule iptunnel kbd_mode kill killall killall5 klogd last less link linux32 linux64 linuxrc ln loadfont loadkmap
    logger login logname logread losetup lpd lpq lpr ls lsattr lsmod lsof lspci lsscsi lsusb lzcat lzma lzop makedevs
    makemime man md5sum mdev mesg microcom mim mkdir mkdosfs mke2fs mkfifo mkfs.ext2 mkfs.minix mkfs.vfat mknod mkpasswd
    mkswap mktemp modinfo modprobe more mount mountpoint mpstat mt mv nameif nanddump nandwrite nbd-client nc netstat
    nice nl nmeter nohup nologin nproc nsenter nslookup ntpd od openvt partprobe passwd paste patch pgrep pidof ping
    ping6 pipe_progress pivot_root pkill pmap popmaildir poweroff powertop printenv printf ps pscan pstree pwd pwdx
    raidautorun rdate rdev readahead readlink readprofile realpath reboot reformime remove-shell renice reset resize
    resume rev rm rmdir rmmod route rpm rpm2cpio rtcwake run-init run-parts runlevel runsv runsvdir rx script
    scriptreplay sed sendmail seq setarch setconsole setfattr setfont setkeycodes setlogcons setpriv setserial setsid
    setuidgid sh sha1sum sha256sum sha3sum sha512sum showkey shred shuf slattach sleep smemcap softlimit sort
    split ssl_client start-stop-daemon stat strings stty su sulogin sum sv svc svlogd svok swapoff swapon
    switch_root sync sysctl syslogd
    tac tail tar taskset tc tcpsvd tee telnet telnetd test tftp tftpd time timeout top touch tr traceroute traceroute6
    tree true truncate ts tsort tty ttysize tunctl ubiattach ubidetach ubimkvol ubirename ubirmvol ubirsvol ubiupdatevol
    udhcpc udhcpc6 udhcpd udpsvd uevent umount uname unexpand uniq unix2dos unlink unlzma unshare unxz unzip uptime
    users usleep uudecode uuencode vconfig vi vlock volname w wall watch watchdog wc wget which who whoami whois xargs
    xxd xz xzcat yes zcat zcip
"""
#: What one busybox binary answers to (1.36, Debian's static build and the usual image together).
BUSYBOX_APPLETS: Final = tuple(_APPLETS.split())
BUSYBOX_EXECUTABLES: Final[Mapping[str, str]] = MappingProxyType(
    {"/bin/busybox": "busybox", **{f"/bin/{applet}": applet for applet in BUSYBOX_APPLETS}}
)

_BUSYBOX_PASSWD = """\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/bin/false
bin:x:2:2:bin:/bin:/bin/false
sys:x:3:3:sys:/dev:/bin/false
mail:x:8:8:mail:/var/spool/mail:/bin/false
www-data:x:33:33:www-data:/var/www:/bin/false
operator:x:37:37:Operator:/var:/bin/false
nobody:x:65534:65534:nobody:/home:/bin/false
"""
_BUSYBOX_GROUP = """\
root:x:0:
daemon:x:1:
bin:x:2:
sys:x:3:
mail:x:8:
www-data:x:33:
operator:x:37:
nobody:x:65534:
"""
_ALPINE_RELEASE = b'NAME="Alpine Linux"\nID=alpine\nPRETTY_NAME="Alpine Linux v3.20"\n'


def _image(
    *names: str,
    size: int,
    executables: Mapping[str, str],
    passwd: str = _BUSYBOX_PASSWD,
    group: str = _BUSYBOX_GROUP,
    files: Mapping[str, bytes] | None = None,
    at_start: bool = False,
    pinned: bool = False,
    **config: Any,
) -> ImageSource:
    config.setdefault("environment", (DEFAULT_PATH,))
    return ImageSource(
        names=names,
        config=ImageConfig(**config),
        size_bytes=size,
        passwd=passwd,
        group=group,
        executables=executables,
        files=files or {},
        at_start=at_start,
        pinned=pinned,
    )


def _busybox(*names: str, user: str = "", size: int = 2_160_000, **more: Any) -> ImageSource:
    return _image(*names, size=size, executables=BUSYBOX_EXECUTABLES, user=user, command=("sh",), **more)


def _pause(version: str, *, user: str = "65535:65535") -> ImageSource:
    name = f"registry.k8s.io/pause:{version}"
    here = name == PAUSE_IMAGE
    return _image(
        name,
        f"k8s.gcr.io/pause:{version}",
        size=320_000,
        executables={"/pause": "pause"},
        passwd="",
        group="",
        user=user,
        entrypoint=("/pause",),
        working_directory="/",
        at_start=here,
        pinned=here,
    )


def _nginx(*names: str, size: int = 67_000_000) -> ImageSource:
    return _image(
        *names,
        size=size,
        executables={**BUSYBOX_EXECUTABLES, "/usr/sbin/nginx": "nginx", "/bin/bash": "sh"},
        command=("nginx", "-g", "daemon off;"),
        stop_signal="SIGQUIT",
        exposed_ports=("80/tcp",),
    )


def _httpd(*names: str, size: int = 57_000_000) -> ImageSource:
    return _image(
        *names,
        size=size,
        executables={
            **BUSYBOX_EXECUTABLES,
            "/usr/local/apache2/bin/httpd": "httpd-foreground",
            "/usr/local/bin/httpd-foreground": "httpd-foreground",
        },
        command=("httpd-foreground",),
        working_directory="/usr/local/apache2",
        stop_signal="SIGWINCH",
        environment=(f"PATH=/usr/local/apache2/bin:{DEFAULT_PATH.removeprefix('PATH=')}",),
        exposed_ports=("80/tcp",),
    )


def _agnhost(*names: str, command: str = "pause", files: Mapping[str, bytes] | None = None) -> ImageSource:
    return _image(
        *names,
        size=53_000_000,
        executables={
            **BUSYBOX_EXECUTABLES,
            "/agnhost": "agnhost",
            "/agnhost-2": "agnhost",
            **{f"/usr/bin/{tool}": tool for tool in ("bash", "curl", "dig", "socat")},
        },
        passwd=f"{_BUSYBOX_PASSWD}user-defined-in-image:x:1000:1000::/:/bin/sh\n",
        group=f"{_BUSYBOX_GROUP}group-defined-in-image:x:50000:user-defined-in-image\n",
        files={"/etc/os-release": _ALPINE_RELEASE, **(files or {})},
        entrypoint=("/agnhost",),
        command=(command,),
        working_directory="/",
    )


def _server(*names: str, path: str, size: int, **config: Any) -> ImageSource:
    """An image with one static binary that serves until it is told to end, and no shell."""
    return _image(*names, size=size, executables={path: MADE_UP_PROGRAM}, **config)


_PAUSES = (
    _pause("3.5", user=""),
    *(_pause(version) for version in ("3.6", "3.7", "3.8", "3.9", "3.10", "3.10.1", "3.10.2")),
)

_CRI_SUITE = (
    _busybox(f"{_E2E}/busybox:1.29-2", f"{_E2E}/busybox:1.29-4", size=732_000),
    _nginx(f"{_E2E}/nginx:1.14-2", f"{_E2E}/nginx:1.14-4", size=6_980_000),
    _httpd(f"{_E2E}/httpd:2.4.38-4", size=40_700_000),
    _httpd(f"{_E2E}/httpd:2.4.39-4", size=41_900_000),
    _image(
        f"{_E2E}/nonewprivs:1.3",
        f"{_E2E}/nonewprivs:1.4",
        size=7_100_000,
        executables={**BUSYBOX_EXECUTABLES, "/nnp": "nnp"},
        entrypoint=("/nnp",),
    ),
    _nginx(f"{_CRI_TOOLS}/hostnet-nginx-amd64:latest", size=24_000_000),
    _busybox(f"{_CRI_TOOLS}/test-image-user-uid:latest", user="1002"),
    _busybox(f"{_CRI_TOOLS}/test-image-user-username:latest", user="www-data"),
    _busybox(f"{_CRI_TOOLS}/test-image-user-uid-group:latest", user="1003:1004"),
    _busybox(f"{_CRI_TOOLS}/test-image-user-username-group:latest", user="www-data:1004"),
    _busybox(
        f"{_CRI_TOOLS}/test-image-predefined-group:latest",
        user="1000",
        passwd=f"{_BUSYBOX_PASSWD}default-user:x:1000:1000::/:/bin/sh\n",
        group=f"{_BUSYBOX_GROUP}group-defined-in-image:x:50000:default-user\n",
    ),
    *(_busybox(f"{_CRI_TOOLS}/test-image-{name}:latest") for name in ("latest", "1", "2", "3")),
    _busybox(*(f"{_CRI_TOOLS}/test-image-tags:{tag}" for tag in "123")),
    *(_busybox(f"{_CRI_TOOLS}/test-image-tag:{tag}") for tag in ("test", "all")),
    _busybox(f"{_CRI_TOOLS}/test-image-digest@sha256:9700f9a2f5bf2c45f2f605a0bd3bce7cf37420ec9d3ed50ac2758413308766bf"),
    *(
        _busybox(f"public.ecr.aws/docker/library/busybox:{tag}")
        for tag in ("1.35.0-glibc", "1-uclibc", "1", "1-glibc", "1-musl")
    ),
)

_KUBERNETES_SUITE = (
    _busybox(f"{_E2E}/busybox:1.36.1-1"),
    _busybox(f"{_E2E}/busybox:1.37.0-2@sha256:a9155b13325b2abef48e71de77bb8ac015412a566829f621d06bfae5c699b1b9"),
    *(_agnhost(f"{_E2E}/agnhost:{version}") for version in ("2.40", "2.47", "2.52", "2.53", "2.55", "2.66.1")),
    *(
        _agnhost(
            f"{_E2E}/{name}:1.7",
            f"{_E2E}/{name}:1.8",
            command="test-webserver",
            files={"/data.json": f'{{"image": "{name}.jpg"}}\n'.encode()},
        )
        for name in ("kitten", "nautilus")
    ),
    *(_nginx(f"{_E2E}/nginx:{version}") for version in ("1.15-4", "1.27.0-2", "1.28.0-2")),
    _busybox(f"{_E2E}/nonroot:1.4", f"{_E2E}/nonroot:1.5", user="1234"),
    _busybox(f"{_E2E}/ipc-utils:1.3", f"{_E2E}/ipc-utils:1.4"),
    _busybox(f"{_E2E}/glibc-dns-testing:2.0.0", f"{_E2E}/glibc-dns-testing:2.1.1", size=61_000_000),
)

_COMMON = (
    *(_busybox(f"{_HUB}/busybox:{tag}") for tag in ("1.28", "1.34", "1.35", "1.36")),
    _busybox(f"{_HUB}/busybox:latest", f"{_HUB}/busybox:1.37", f"{_HUB}/busybox:stable"),
    *(
        _busybox(f"{_HUB}/alpine:{tag}", size=3_620_000, files={"/etc/os-release": _ALPINE_RELEASE})
        for tag in ("latest", "3.18", "3.19", "3.20", "3.21")
    ),
    _nginx(f"{_HUB}/nginx:latest", f"{_HUB}/nginx:1.27", f"{_HUB}/nginx:stable"),
    *(_nginx(f"{_HUB}/nginx:{tag}") for tag in ("1.14.2", "1.16.1", "1.25")),
    _nginx(f"{_HUB}/nginx:alpine", f"{_HUB}/nginx:1.27-alpine", size=20_500_000),
    _httpd(f"{_HUB}/httpd:latest", f"{_HUB}/httpd:2.4"),
    *(
        _server(
            f"registry.k8s.io/coredns/coredns:{version}",
            path="/coredns",
            size=18_500_000,
            user="nonroot:nonroot",
            passwd="root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/:/sbin/nologin\n",
            group="root:x:0:\nnonroot:x:65532:\n",
            entrypoint=("/coredns",),
            exposed_ports=("53/tcp", "53/udp"),
        )
        for version in ("v1.9.3", "v1.11.1", "v1.11.3", "v1.12.1")
    ),
    *(
        _server(f"registry.k8s.io/etcd:{version}", path="/usr/local/bin/etcd", size=58_000_000, command=("etcd",))
        for version in ("3.5.4-0", "3.5.15-0", "3.5.21-0", "3.6.4-0")
    ),
)


def builtin_catalogue() -> Catalogue:
    """A catalogue of these images and no described registry."""
    return Catalogue((*_PAUSES, *_CRI_SUITE, *_KUBERNETES_SUITE, *_COMMON))
