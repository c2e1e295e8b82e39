"""What a process sees of files: its own layer over the image, and mounts from the host over both."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from fakecri.core.files import ContainerFiles
from fakecri.kernel.host_twin import TwinHostFiles
from fakecri.wire import messages

IMAGE = SimpleNamespace(
    passwd="root:x:0:0",
    group=None,
    files={"/etc/app": "from the image", "/bytes": b"\x00\xff"},
    executables=SimpleNamespace(programs={"/bin/sleep": "sleep"}),
)


@pytest.fixture
def host() -> TwinHostFiles:
    files = TwinHostFiles()
    files.make_directories("/srv/inner")
    files.write("/srv/a", b"host a")
    files.write("/srv/inner/b", b"host b")
    files.write("/one", b"one file")
    return files


def seen(host: TwinHostFiles, *mounts: tuple[str, str, bool], layer: dict[str, bytes] | None = None) -> ContainerFiles:
    config = messages.ContainerConfig(
        mounts=[messages.Mount(container_path=path, host_path=source, readonly=ro) for path, source, ro in mounts]
    )
    container: Any = SimpleNamespace(image=IMAGE, config=lambda: config, restored_layer=layer or {})
    return ContainerFiles(container, host)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("/etc/app", b"from the image"),
        ("/etc/../etc//app", b"from the image"),
        ("//etc/app", b"from the image"),
        ("/bytes", b"\x00\xff"),
        ("/etc/passwd", b"root:x:0:0"),
        ("/etc/group", None),
        ("/nothing", None),
    ],
)
def test_the_images_files_are_there(host: TwinHostFiles, path: str, content: bytes | None) -> None:
    files = seen(host)
    assert files.read(path) == content
    assert files.exists(path) is (content is not None)


def test_an_executable_is_there_and_has_no_text(host: TwinHostFiles) -> None:
    files = seen(host)
    assert files.exists("/bin/sleep")
    assert files.read("/bin/sleep") is None


def test_what_is_written_goes_to_the_containers_own_layer(host: TwinHostFiles) -> None:
    files = seen(host)
    files.write("/etc/app", b"changed")
    files.write("/new", b"new")
    assert files.read("/etc/app") == b"changed"
    assert files.exists("/new")
    assert files.layer == {"/etc/app": b"changed", "/new": b"new"}
    assert seen(host).read("/etc/app") == b"from the image", "another container has its own"
    assert host.stat("/new") is None


def test_a_restored_layer_is_there_and_its_source_stays(host: TwinHostFiles) -> None:
    kept = {"/state": b"1"}
    files = seen(host, layer=kept)
    files.write("/state", b"2")
    assert files.read("/state") == b"2"
    assert kept == {"/state": b"1"}


def test_a_mounted_directory_covers_the_image_and_reaches_the_host(host: TwinHostFiles) -> None:
    files = seen(host, ("/etc", "/srv", False))
    assert files.read("/etc/a") == b"host a"
    assert files.read("/etc/app") is None, "covered"
    assert files.exists("/etc/inner/b")
    files.write("/etc/c", b"back")
    assert host.read("/srv/c") == b"back"
    assert files.layer == {}
    assert files.read("/etcetera") is None


def test_a_mounted_file_and_the_inner_of_two_mounts(host: TwinHostFiles) -> None:
    files = seen(host, ("/data", "/srv", False), ("/data/inner", "/one", True), ("/", "/srv/inner", False))
    assert files.read("/data/inner") == b"one file"
    assert files.read("/data/a") == b"host a"
    assert files.read("/b") == b"host b", "a mount over the root"


def test_a_read_only_mount_refuses_writes(host: TwinHostFiles) -> None:
    files = seen(host, ("/data", "/srv", True))
    with pytest.raises(OSError, match="Read-only file system") as refused:
        files.write("/data/a", b"")
    assert refused.value.errno == 30
    assert host.read("/srv/a") == b"host a"


def test_a_refused_host_path_is_nothing_to_read_and_no_permission_to_write(host: TwinHostFiles) -> None:
    files = seen(host, ("/data", "/srv/../etc", False))
    assert not files.exists("/data/x")
    assert files.read("/data/x") is None
    with pytest.raises(PermissionError) as refused:
        files.write("/data/x", b"")
    assert refused.value.errno == 13
    assert refused.value.filename == "/data/x"
