"""Which program an argv names, in an image's tree of files, as ``execve`` under runc finds it.

The outcomes and their order are those of runc 1.1 (working directory first, then the look-up); each refusal carries
the facts, and ``text``, the words of the operating system and Go's ``os/exec`` that every runtime passes on.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

#: What ``PATH`` is when the environment does not say.
DEFAULT_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class SpawnError(Exception):
    """A process could not be started; nothing is left of it."""

    def __init__(self, subject: str, text: str) -> None:
        super().__init__(subject, text)
        #: The operating system's words, such as ``stat /x: no such file or directory``.
        self.text = text


class CommandNotFound(SpawnError):
    """No such file: ``command`` as asked for; ``searched`` tells whether it was looked for in ``PATH``."""

    def __init__(self, command: str) -> None:
        self.command = command
        self.searched = "/" not in command
        missing = (
            "executable file not found in $PATH" if self.searched else f"stat {command}: no such file or directory"
        )
        super().__init__(command, missing)


class NotSimulated(CommandNotFound):
    """The file is there, but nothing simulates the ``program`` that it is."""

    def __init__(self, command: str, program: str) -> None:
        super().__init__(command)
        self.program = program
        self.text = f"no program {program!r} is simulated"


class NotExecutable(SpawnError):
    """``command`` is there but cannot be executed."""

    def __init__(self, command: str, text: str = "permission denied") -> None:
        self.command = command
        super().__init__(command, text)


class BadWorkingDirectory(SpawnError):
    """The working directory ``path`` is neither there nor can it be created."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        super().__init__(path, text)


@dataclass(frozen=True, slots=True)
class Executables:
    """What an image holds, as far as starting a process is concerned. All paths are absolute and normal."""

    #: Path → name of the program that a file is.
    programs: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    #: Files that cannot be executed.
    files: frozenset[str] = frozenset()
    directories: frozenset[str] = frozenset()
    #: True: the image was made up for an unknown reference; any command is there and is ``made_up_program``.
    made_up: bool = False
    made_up_program: str = "wait"

    def check_working_directory(self, path: str) -> None:
        """Accept a directory that is there or can be made (runc makes missing ones).

        Raises:
            BadWorkingDirectory: the path is relative, a file, or below a file.
        """
        if not path.startswith("/"):
            raise BadWorkingDirectory(path, "Cwd must be an absolute path")
        part = ""
        for name in posixpath.normpath(path).strip("/").split("/"):
            part = f"{part}/{name}"
            if part in self.files or part in self.programs:
                raise BadWorkingDirectory(path, f"mkdir {part}: not a directory")

    def find(self, command: str, environment: Mapping[str, str], working_directory: str = "/") -> str:
        """The name of the program that ``command`` runs.

        Raises:
            CommandNotFound, NotExecutable: as ``execvp`` would fail.
        """
        if "/" in command:
            return self._at(command, working_directory)
        for directory in environment.get("PATH", DEFAULT_PATH).split(":") if command else ():
            path = posixpath.normpath(posixpath.join(working_directory, directory, command))
            if path in self.programs:
                return self.programs[path]
        if self.made_up:
            return self.made_up_program
        raise CommandNotFound(command)

    def _at(self, command: str, working_directory: str) -> str:
        path = posixpath.normpath(posixpath.join(working_directory, command))
        if path in self.programs:
            return self.programs[path]
        if path in self.files:
            raise NotExecutable(command)
        if path in self.directories or self._is_parent(path):
            raise NotExecutable(command, "is a directory")
        if self.made_up:
            return self.made_up_program
        raise CommandNotFound(command)

    def _is_parent(self, path: str) -> bool:
        prefix = path.rstrip("/") + "/"
        return any(known.startswith(prefix) for paths in (self.programs, self.files) for known in paths)
