"""One runtime for one test: made from plain options, served on a private socket, looked at from inside.

The rule: what a test sees here is what a client sees or what the record holds; nothing is changed but time.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar

from fakecri.assembly import build_engine
from fakecri.base.reasons import Code
from fakecri.clock import DEFAULT_EPOCH_NS, SECOND
from fakecri.core.image_message import image_message
from fakecri.core.status import container_status, sandbox_status
from fakecri.service.host import Host
from fakecri.service.server import Server
from fakecri.wire.levels import Level

if TYPE_CHECKING:
    from fakecri.core.catalogue import Catalogue
    from fakecri.core.node import Node
    from fakecri.engine import Engine
    from fakecri.personality.model import Personality
    from fakecri.record.call import Call
    from fakecri.service.real_time import ClockMode
    from fakecri.wire import messages

T = TypeVar("T")
#: A unix socket's path is short, and pytest's own temporary directories are not.
_PLACE: Final = "/tmp"
#: Real seconds that calls have which are still open when a test is over; idle clients see an orderly end at once.
_GRACE_S: Final = 0.1


class TestClock:
    """The runtime's virtual time. Spans are seconds here, as in tests; everything inside is ns."""

    __test__ = False

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @property
    def now_ns(self) -> int:
        """Virtual ns since the runtime was made, as a call that came now would see it."""
        self._engine.advance_to(0)
        return self._engine.clock.now_ns

    @property
    def now(self) -> float:
        """The same in seconds."""
        return self.now_ns / SECOND

    @property
    def wall_ns(self) -> int:
        """Unix time in ns that timestamps show now."""
        self._engine.advance_to(0)
        return self._engine.clock.wall_ns

    def advance(self, seconds: float) -> None:
        """Let this much virtual time pass at once, with everything that falls due in it, in order.

        Raises:
            ValueError: a negative span; time never goes back.
        """
        self._engine.advance(round(seconds * SECOND))

    def step_wall(self, seconds: float) -> None:
        """Step the wall clock, also backwards: timestamps follow, timers do not."""
        with self._engine.lock:
            self._engine.clock.step_wall(round(seconds * SECOND))


class Calls:
    """The record: every call as its client saw it, oldest first."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __iter__(self) -> Iterator[Call]:
        return iter(self._engine.calls)

    def __len__(self) -> int:
        return len(self._engine.calls)

    def __getitem__(self, index: int) -> Call:
        return list(self)[index]

    def of(self, method: str) -> list[Call]:
        """The calls of one RPC."""
        return self._engine.calls.of(method)

    def refused(self) -> list[Call]:
        """The calls that ended in an error."""
        return [call for call in self if call.reply is not None and call.reply.code != Code.OK]

    def clear(self) -> None:
        """Forget them."""
        self._engine.calls.clear()

    def __repr__(self) -> str:
        return f"<{len(self)} calls: {', '.join(map(repr, self))}>"


class View(Mapping[str, T], Generic[T]):
    """Live objects by id, as a list RPC gives them; each look asks anew, and leaves no call in the record."""

    def __init__(self, read: Callable[[], list[Any]]) -> None:
        self._read = read

    def _now(self) -> dict[str, T]:
        return {item.id: item for item in self._read()}

    def __getitem__(self, key: str) -> T:
        return self._now()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._now())

    def __len__(self) -> int:
        return len(self._now())

    def named(self, name: str) -> T:
        """The only one whose metadata has this name.

        Raises:
            KeyError: there is none, or more than one; the text lists the names that exist.
        """
        everything = list(self.values())
        found = [item for item in everything if item.metadata.name == name]  # type: ignore[attr-defined]
        if len(found) != 1:
            names = sorted(item.metadata.name for item in everything)  # type: ignore[attr-defined]
            raise KeyError(f"{len(found)} objects are named {name!r}; there are {names}")
        return found[0]


class FakeRuntime:
    """A simulated runtime, served on a private socket from ``start`` to ``close``.

    ``personality``, ``level`` ("1.31"), ``api`` ("v1", or several by commas) and ``seed`` say which runtime it is;
    ``clock`` how its time passes while it is served; ``node`` and ``catalogue`` what it stands on, where the built-in
    ones will not do; ``epoch_ns`` (Unix ns) where its wall clock begins. With ``host_files`` the log directories and
    mounts that clients name are the machine's own, else they are kept in memory.
    """

    def __init__(
        self,
        *,
        personality: str | Personality = "reference",
        level: str | None = None,
        api: str | None = None,
        seed: int = 0,
        clock: ClockMode | str = "autojump",
        node: Node | None = None,
        catalogue: Catalogue | None = None,
        epoch_ns: int = DEFAULT_EPOCH_NS,
        image_socket: bool = False,
        host_files: bool = False,
    ) -> None:
        self.seed = seed
        self._host = Host(self._file_problem) if host_files else None
        #: The runtime itself: in-process calls, gates, and everything that has no shorter name here.
        self.engine: Engine = build_engine(
            personality=personality,
            level=None if level is None else Level.parse(level),
            apis=None if api is None else frozenset(part.strip() for part in api.split(",")),
            seed=seed,
            node=node,
            catalogue=catalogue,
            epoch_ns=epoch_ns,
            **(self._host.settings() if self._host is not None else {}),
        )
        self.clock = TestClock(self.engine)
        self.calls = Calls(self.engine)
        runtime = self.engine.runtime
        #: By id: what PodSandboxStatus, ContainerStatus and ListImages show.
        self.sandboxes: View[messages.PodSandboxStatus] = View(
            self._locked(lambda: [sandbox_status(runtime, sandbox) for sandbox in runtime.sandboxes])
        )
        self.containers: View[messages.ContainerStatus] = View(
            self._locked(lambda: [container_status(runtime, container) for container in runtime.containers])
        )
        self.images: View[messages.Image] = View(
            self._locked(lambda: [image_message(runtime, image) for image in runtime.images])
        )
        self._directory = Path(tempfile.mkdtemp(prefix="cri-", dir=_PLACE))
        image_path = self._directory / "images.sock" if image_socket else None
        self._server = Server(self.engine, self._directory / "cri.sock", image_socket=image_path, clock=clock)

    def _locked(self, read: Callable[[], list[Any]]) -> Callable[[], list[Any]]:
        def look() -> list[Any]:
            self.engine.advance_to(0)  # time that has passed has had its effects before anybody looks
            with self.engine.lock:
                return read()

        return look

    def _file_problem(self, path: str, error: BaseException) -> None:
        self.engine.failures.append(f"log file {path}: {error!r}")

    @property
    def socket(self) -> Path:
        """The socket's path."""
        return self._server.socket

    @property
    def endpoint(self) -> str:
        """``unix:///…``: what a client is pointed at."""
        return self._server.endpoint

    @property
    def image_endpoint(self) -> str:
        """The same for clients of ImageService."""
        return self._server.image_endpoint

    @property
    def failures(self) -> list[str]:
        """Tracebacks of what went wrong inside the runtime, and should not have."""
        return self.engine.failures

    def start(self) -> None:
        """Serve."""
        self._server.start()

    def close(self) -> None:
        """Stop serving, and leave no file behind. Idempotent."""
        self._server.stop(_GRACE_S)
        if self._host is not None:
            self._host.close()
        shutil.rmtree(self._directory, ignore_errors=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<FakeRuntime {self.engine.personality.name} on {self.endpoint}, seed {self.seed}>"
