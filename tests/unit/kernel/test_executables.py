"""Which program a command is, and how a command that cannot be executed is refused."""

from __future__ import annotations

import pytest

from fakecri.kernel.executables import (
    DEFAULT_PATH,
    BadWorkingDirectory,
    CommandNotFound,
    Executables,
    NotExecutable,
    SpawnError,
)

IMAGE = Executables(
    programs={"/bin/sleep": "sleep", "/usr/local/bin/sleep": "other sleep", "/srv/tool": "tool"},
    files=frozenset({"/etc/passwd", "/usr/bin/notes"}),
    directories=frozenset({"/empty"}),
)
PATH = {"PATH": DEFAULT_PATH}


@pytest.mark.parametrize(
    ("command", "environment", "directory", "program"),
    [
        ("/bin/sleep", {}, "/", "sleep"),
        ("/bin/../bin/./sleep", {}, "/", "sleep"),
        ("sleep", PATH, "/", "other sleep"),
        ("sleep", {}, "/", "other sleep"),
        ("sleep", {"PATH": "/bin:/usr/local/bin"}, "/", "sleep"),
        ("./tool", {}, "/srv", "tool"),
        ("srv/tool", {}, "/", "tool"),
        ("tool", {"PATH": "/bin::/usr/bin"}, "/srv", "tool"),
    ],
)
def test_a_command_is_found_as_execvp_finds_it(
    command: str, environment: dict[str, str], directory: str, program: str
) -> None:
    assert IMAGE.find(command, environment, directory) == program


@pytest.mark.parametrize(
    ("command", "text", "searched"),
    [
        ("/nosuchbin", "stat /nosuchbin: no such file or directory", False),
        ("./nosuchbin", "stat ./nosuchbin: no such file or directory", False),
        ("nosuchbin", "executable file not found in $PATH", True),
        ("notes", "executable file not found in $PATH", True),
        ("", "executable file not found in $PATH", True),
    ],
)
def test_a_missing_command(command: str, text: str, searched: bool) -> None:
    with pytest.raises(CommandNotFound) as caught:
        IMAGE.find(command, PATH)
    assert (caught.value.command, caught.value.text, caught.value.searched) == (command, text, searched)


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("/etc/passwd", "permission denied"),
        ("/etc", "is a directory"),
        ("/empty", "is a directory"),
        ("/", "is a directory"),
    ],
)
def test_a_file_that_cannot_be_executed(command: str, text: str) -> None:
    with pytest.raises(NotExecutable) as caught:
        IMAGE.find(command, PATH)
    assert (caught.value.command, caught.value.text) == (command, text)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("/etc/passwd", "mkdir /etc/passwd: not a directory"),
        ("/etc/passwd/below/it", "mkdir /etc/passwd: not a directory"),
        ("/bin/sleep", "mkdir /bin/sleep: not a directory"),
        ("srv", "Cwd must be an absolute path"),
    ],
)
def test_a_working_directory_that_cannot_be(path: str, text: str) -> None:
    with pytest.raises(BadWorkingDirectory) as caught:
        IMAGE.check_working_directory(path)
    assert (caught.value.path, caught.value.text) == (path, text)


@pytest.mark.parametrize("path", ["/", "/etc", "/not/there/yet", "/empty"])
def test_a_working_directory_that_is_there_or_can_be_made(path: str) -> None:
    IMAGE.check_working_directory(path)


@pytest.mark.parametrize("command", ["anything", "/opt/any/thing", "./relative"])
def test_a_made_up_image_has_every_command(command: str) -> None:
    assert Executables(made_up=True).find(command, {}) == "wait"


def test_a_made_up_image_keeps_what_it_is_said_to_hold() -> None:
    image = Executables(programs={"/entry": "tool"}, files=frozenset({"/etc/passwd"}), made_up=True)
    assert image.find("/entry", {}) == "tool"
    with pytest.raises(SpawnError):
        image.find("/etc/passwd", {})
