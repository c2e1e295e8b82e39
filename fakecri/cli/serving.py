"""What ``serve`` does: settings to an engine, an engine to a server, a server until a signal."""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import click

from fakecri.assembly import build_engine
from fakecri.cli import banner, places
from fakecri.cli.log import CallLog, file_problem
from fakecri.cli.world import images_and_handlers, node
from fakecri.service.host import Host
from fakecri.service.real_time import ClockMode, Flow, wall_ns
from fakecri.service.server import GRACE_S, Server
from fakecri.service.socket import SocketUnusableError
from fakecri.wire.levels import Level

_ENDS: Final = frozenset({signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
#: Real seconds from the signal on after which the process is gone, whatever hangs.
_LAST_RESORT_S: Final = 2.9
#: Calls that the record keeps.
_KEPT_CALLS: Final = 1000


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The options of ``serve``, as given."""

    socket: Path | None
    image_socket: Path | None
    api: str | None
    level: str | None
    personality: str
    images: tuple[Path, ...]
    pod_cidr: str
    root: Path | None
    seed: int
    clock: str
    runtime_handlers: str | None
    cgroup_driver: str
    no_events: bool
    no_host_files: bool
    unknown_command: str
    unknown_images: str
    ready_fd: int | None
    log_format: str
    verbose: int


def serve(setting: Setting) -> None:
    """Serve until a signal.

    Raises:
        click.ClickException: a setting cannot be met; one line that names it.
    """
    # Blocked before any thread starts, so that the signals reach nobody but ``sigwait``.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
    with ExitStack() as stack:
        try:
            server, facts = _started(setting, stack)
        except (ValueError, SocketUnusableError, OSError) as error:
            raise click.ClickException(str(error)) from error
        banner.show(facts, setting.log_format)
        _tell_ready(setting.ready_fd, facts)
        signal.sigwait(_ENDS)
        _arm_last_resort()
        server.stop(GRACE_S)


def _started(setting: Setting, stack: ExitStack) -> tuple[Server, banner.Facts]:
    clock = ClockMode.parse(setting.clock)
    if clock.flow is Flow.HOLD:
        raise ValueError("--clock hold needs somebody to advance the time, which only Python can: use real or autojump")
    _check_ready_fd(setting.ready_fd)
    level = None if setting.level is None else Level.parse(setting.level)
    socket = _socket(setting)
    root = _root(setting, stack)
    catalogue, described = images_and_handlers(setting.images)
    the_node = node(setting, root, described)
    engine = build_engine(
        personality=setting.personality,
        node=the_node,
        catalogue=catalogue,
        level=level,
        apis=None if setting.api is None else frozenset(part.strip() for part in setting.api.split(",")),
        seed=setting.seed,
        epoch_ns=wall_ns(),
        kept_calls=_KEPT_CALLS,
        **_host_files(setting, stack),
    )
    log = CallLog(engine, setting.log_format, calls=setting.verbose > 0)
    server = Server(engine, socket, image_socket=setting.image_socket, clock=clock, observer=log.ended)
    server.start()
    stack.callback(server.stop, 0)
    return server, banner.Facts(
        personality=engine.personality.name,
        apis=tuple(sorted(engine.served["RuntimeService"])),
        level=str(max(view.level for view in engine.views.values())),
        socket=server.socket,
        image_socket=server.image_socket or server.socket,
        pod_cidrs=the_node.pod_cidrs,
        cgroup_driver=setting.cgroup_driver,
        clock=str(server.clock),
        seed=setting.seed,
        host_files=not setting.no_host_files,
        root=root,
        pid=os.getpid(),
    )


def _host_files(setting: Setting, stack: ExitStack) -> dict[str, Any]:
    if setting.no_host_files:
        return {}
    host = Host(file_problem)
    stack.callback(host.close)
    return host.settings()


def _socket(setting: Setting) -> Path:
    if setting.socket is not None:
        return setting.socket
    socket = places.usual_socket()
    places.make_private(socket.parent)
    return socket


def _root(setting: Setting, stack: ExitStack) -> Path:
    if setting.root is None:
        root = Path(tempfile.mkdtemp(prefix="fakecri-root-"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
    else:
        root = setting.root.absolute()
        root.mkdir(parents=True, exist_ok=True)
    return root


def _check_ready_fd(descriptor: int | None) -> None:
    if descriptor is not None:
        try:
            os.fstat(descriptor)
        except OSError as error:
            raise ValueError(f"--ready-fd {descriptor} is not open: hand the descriptor on to this process") from error


def _tell_ready(descriptor: int | None, facts: banner.Facts) -> None:
    if descriptor is not None:
        os.write(descriptor, json.dumps(facts.as_json()).encode() + b"\n")
        if descriptor > 2:
            os.close(descriptor)


def _arm_last_resort() -> None:
    """From now on a second signal, or the time, ends the process as it is."""
    for number in (*_ENDS, signal.SIGALRM):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    signal.setitimer(signal.ITIMER_REAL, _LAST_RESORT_S)
