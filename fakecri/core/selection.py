"""Which objects a List or Stream RPC shows, and in which order. Filters are ANDed (CRI ``PodSandboxFilter`` etc.)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from fakecri.core.store import Miss
from fakecri.core.traits import EmptyLabelSelector, ListOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from fakecri.core.runtime import Runtime
    from fakecri.core.store import Store


L = TypeVar("L")


def _labels_match(runtime: Runtime, entity: Any, wanted: Mapping[str, str]) -> bool:
    if not wanted:
        return True
    labels = entity.labels
    return all(_label_matches(runtime, labels, key, value) for key, value in wanted.items())


def _label_matches(runtime: Runtime, labels: Mapping[str, str], key: str, value: str) -> bool:
    if not value and runtime.traits.empty_label_selector is EmptyLabelSelector.MATCHES_MISSING:
        return not labels.get(key)
    return labels.get(key) == value


def ordered(runtime: Runtime, stream: str, entities: Iterable[L]) -> list[L]:
    """The objects (given oldest first) in the order of the personality's lists."""
    found = list(entities)
    order = _list_order(runtime)
    if order is ListOrder.NEWEST_FIRST:
        found.reverse()
    elif order is ListOrder.ROTATED and len(found) > 1:
        start = runtime.ids.below(f"order:{stream}", len(found))
        found = found[start:] + found[:start]
    return found


def plain_order(runtime: Runtime) -> bool:
    """Whether an unfiltered list is simply the store's own order."""
    return _list_order(runtime) is ListOrder.OLDEST_FIRST


def _list_order(runtime: Runtime) -> ListOrder:
    return runtime.traits.list_order


def select(
    runtime: Runtime,
    store: Store[Any],
    *,
    id_filter: str,
    labels: Mapping[str, str],
    more: Callable[[Any], bool] | None = None,
    among: Iterable[Any] | None = None,
) -> list[Any]:
    """The objects that pass a filter, oldest first.

    ``id_filter`` may be a unique prefix; one that is unknown or ambiguous selects nothing (containerd, measured).
    ``among`` narrows the candidates, ``more`` is one more condition.
    """
    candidates: Iterable[Any]
    if id_filter:
        found = store.find(id_filter)
        candidates = () if isinstance(found, Miss) else (found,)
        if among is not None:
            wanted = {entity.id for entity in among}
            candidates = [entity for entity in candidates if entity.id in wanted]
    elif among is not None:
        candidates = among
    else:
        candidates = store
        for key, value in labels.items():
            if value:
                candidates = store.with_label(key, value)
                break
    return [
        entity for entity in candidates if (more is None or more(entity)) and _labels_match(runtime, entity, labels)
    ]
