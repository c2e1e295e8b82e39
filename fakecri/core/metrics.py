"""What a metric is: a row with name, help, kind and label keys, and a function that samples a container or a pod.

Descriptors and samples come from the same row, so that a sample has as many label values as its descriptor has keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from fakecri.core import cgroups
from fakecri.core.catalogue_builtin import PAUSE_IMAGE

if TYPE_CHECKING:
    from fakecri.core import stats
    from fakecri.core.container import Container
    from fakecri.core.runtime import Runtime
    from fakecri.core.sandbox import PodSandbox
    from fakecri.wire import messages

#: What every metric is labelled with; a row adds its own after these.
BASE_LABELS: Final = ("id", "name", "image", "namespace", "pod", "container")


@dataclass(frozen=True, slots=True)
class Subject:
    """One container, or (``container`` None) one pod, at one moment."""

    runtime: Runtime
    sandbox: PodSandbox
    container: Container | None
    figures: stats.Figures
    limits: messages.LinuxContainerResources

    def labels(self) -> tuple[str, ...]:
        """Values of ``BASE_LABELS``; a pod's own are those of its sandbox process, as cAdvisor shows it."""
        driver, sandbox = self.runtime.node.cgroup_driver, self.sandbox
        if self.container is None:
            group, name, image, shown = cgroups.sandbox_path(driver, sandbox), sandbox.id, PAUSE_IMAGE, "POD"
        else:
            group, name = cgroups.container_path(driver, self.container), self.container.id
            image, shown = self.container.image_name, self.container.container_name
        return (group, name, image, sandbox.namespace, sandbox.pod_name, shown)


#: Values of a row's own labels, and the metric's value.
Sample: TypeAlias = tuple[tuple[str, ...], int]
Samples: TypeAlias = Callable[[Subject], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Row:
    """One metric."""

    name: str
    help: str
    kind: int
    samples: Samples
    own_labels: tuple[str, ...] = ()

    @property
    def label_keys(self) -> tuple[str, ...]:
        """The keys in the order of every sample's values."""
        return (*BASE_LABELS, *self.own_labels)
