"""Drives crictl: one command a call, answers as the JSON that it prints.

The rule: crictl gets a configuration file of its own, so that nothing of the machine's (`/etc/crictl.yaml`, endpoints
in the environment) decides which runtime a test talks to.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

COMMAND_SECONDS: Final = 60.0


class CrictlError(Exception):
    """A crictl command failed; the message holds what it printed to stderr."""


class Crictl:
    """crictl against one endpoint; `directory` takes its configuration and the files that commands name."""

    def __init__(self, program: Path, endpoint: str, directory: Path) -> None:
        self.program = program
        self.directory = directory
        self.config = directory / "crictl.yaml"
        self.config.write_text(
            f"runtime-endpoint: {endpoint}\nimage-endpoint: {endpoint}\ntimeout: 20\npull-image-on-create: false\n"
        )

    def command(self, *arguments: str) -> list[str]:
        return [str(self.program), "--config", str(self.config), *arguments]

    @staticmethod
    def environment() -> dict[str, str]:
        return {name: value for name, value in os.environ.items() if not name.endswith("_ENDPOINT")}

    def run(self, *arguments: str) -> str:
        """Runs one command and answers its output, without the last newline."""
        done = subprocess.run(
            self.command(*arguments),
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        if done.returncode:
            raise CrictlError(f"`crictl {' '.join(arguments)}` ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout.rstrip("\n")

    def json(self, command: str, *arguments: str) -> Any:
        return json.loads(self.run(command, "--output", "json", *arguments))

    def written(self, name: str, content: dict[str, Any]) -> str:
        """A configuration file as `runp` and `create` read it."""
        path = self.directory / f"{name}.json"
        path.write_text(json.dumps(content))
        return str(path)

    def runp(self, name: str, **more: Any) -> tuple[str, str]:
        """Runs a pod sandbox; answers its id and its configuration file, which `create` wants again."""
        config = {
            "metadata": {"name": name, "uid": f"uid-{name}", "namespace": "default", "attempt": 0},
            "hostname": name,
            "log_directory": str(self.directory / "logs" / name),
            "labels": {"app": name},
            "annotations": {"note": f"of {name}"},
            "linux": {},
            **more,
        }
        file = self.written(f"pod-{name}", config)
        return self.run("runp", file), file

    def create(self, pod: tuple[str, str], name: str, image: str, command: list[str], **more: Any) -> str:
        sandbox, pod_file = pod
        # A kubelet makes the directory of a container's log; crictl does not.
        logs = json.loads(Path(pod_file).read_text())["log_directory"]
        (Path(logs) / name).mkdir(parents=True, exist_ok=True)
        config = {
            "metadata": {"name": name, "attempt": 0},
            "image": {"image": image},
            "command": command,
            "log_path": f"{name}/0.log",
            "labels": {"part": name},
            "annotations": {"made": "by hand"},
            "linux": {},
            **more,
        }
        return self.run("create", sandbox, self.written(f"container-{name}", config), pod_file)
