"""The real files of one runtime: what ``build_engine`` takes to leave memory for the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakecri.service.host_files import RealHostFiles
from fakecri.service.log_files import RealLogFiles

if TYPE_CHECKING:
    from collections.abc import Callable

    from fakecri.engine import Port


class Host:
    """Host paths and log files, with the writer's thread; ``close`` it once no engine uses it any more."""

    def __init__(self, on_error: Callable[[str, BaseException], None]) -> None:
        """``on_error(path, exception)`` is told, in the writer's thread, of what no answer carries."""
        self.files = RealHostFiles()
        self.logs = RealLogFiles(self.files, on_error=on_error)
        self.ports: dict[str, Port] = {"logs": self.logs.port}

    def settings(self) -> dict[str, Any]:
        """The arguments of ``build_engine`` that stand for it."""
        return {"host_files": self.files, "log_files": self.logs, "ports": self.ports}

    def close(self) -> None:
        """Write what is queued."""
        self.logs.close()
