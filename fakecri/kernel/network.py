"""Pod addresses out of CIDRs, and the node's ports that pods have taken.

An address belongs to one pod at a time, also across a move of the pool: pods keep theirs, new pods get the new one's.
Addresses are handed out in order; those given back come last, in the order in which they came back, so that a client
with an old address in its cache meets a new pod behind it as late as possible.
"""

from __future__ import annotations

import ipaddress
from collections import deque
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
#: Protocol name (``TCP``, ``UDP``, ``SCTP``), host port, host IP (empty: every address of the node).
HostPort: TypeAlias = tuple[str, int, str]

_ANY_ADDRESS = frozenset({"", "0.0.0.0", "::"})


class PoolExhausted(Exception):
    """Every address of ``cidr`` is taken."""

    def __init__(self, cidr: str) -> None:
        super().__init__(f"no address is left in {cidr}")
        self.cidr = cidr


class HostPortTaken(Exception):
    """Another pod (``owner``) has this port of the node."""

    def __init__(self, protocol: str, port: int, owner: str) -> None:
        super().__init__(f"host port {port}/{protocol} is taken by {owner}")
        self.protocol = protocol
        self.port = port
        self.owner = owner


class _Pool:
    """The addresses of one CIDR, without those that the network itself, its gateway and IPv4 broadcast take."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self._next = 2  # 0 is the network, 1 the gateway
        self._end = network.num_addresses - (network.version == 4)
        self._returned: deque[str] = deque()

    @property
    def gateway(self) -> str:
        return str(self.network[1])

    def take(self, in_use: dict[str, str]) -> str:
        while self._next < self._end:
            address = str(self.network[self._next])
            self._next += 1
            if address not in in_use:
                return address
        for _ in range(len(self._returned)):
            address = self._returned.popleft()
            if address not in in_use:
                return address
        raise PoolExhausted(str(self.network))

    def give_back(self, address: str) -> None:
        parsed = ipaddress.ip_address(address)
        if parsed.version != self.network.version or parsed not in self.network:
            return
        offset = int(parsed) - int(self.network.network_address)
        if 2 <= offset < self._next:  # a later one has its turn yet
            self._returned.append(address)


def parse_cidrs(cidrs: Iterable[str]) -> tuple[Network, ...]:
    """One or two CIDRs, the primary family first; host bits are taken as a network's, as Go's ``ParseCIDR`` does.

    Raises:
        ValueError: none, more than one of a family, not a CIDR, or too small for a gateway and a pod; names which.
    """
    networks: list[Network] = []
    for cidr in cidrs:
        if "/" not in cidr:
            raise ValueError(f"{cidr!r} is no CIDR: write ADDRESS/LENGTH, such as 10.88.0.0/16")
        network = ipaddress.ip_network(cidr, strict=False)
        if network.num_addresses < 4:
            raise ValueError(
                f"{cidr} has no room for a gateway and a pod: take a prefix of 30 (IPv4), 126 (IPv6) or less"
            )
        if any(network.version == other.version for other in networks):
            raise ValueError(f"{cidr} is a second IPv{network.version} network: give at most one of each family")
        networks.append(network)
    if not networks:
        raise ValueError("no pod CIDR: give one such as 10.88.0.0/16, or one of each family")
    return tuple(networks)


class PodNetwork:
    """The pods' addresses on this node: one per family."""

    def __init__(self, cidrs: Iterable[str]) -> None:
        """Begin with these CIDRs.

        Raises:
            ValueError: as ``parse_cidrs``.
        """
        self._pools = tuple(_Pool(network) for network in parse_cidrs(cidrs))
        self._owners: dict[str, str] = {}
        self._addresses: dict[str, tuple[str, ...]] = {}

    @property
    def cidrs(self) -> tuple[str, ...]:
        """The CIDRs that new pods get addresses of, primary family first."""
        return tuple(str(pool.network) for pool in self._pools)

    @property
    def gateways(self) -> tuple[str, ...]:
        """The node's own address in each CIDR."""
        return tuple(pool.gateway for pool in self._pools)

    def allocate(self, owner: str) -> tuple[str, ...]:
        """Give an owner one address of each family, primary first; the ones that it has, if it has some.

        Raises:
            PoolExhausted: nothing was given.
        """
        if owner in self._addresses:
            return self._addresses[owner]
        taken: list[str] = []
        try:
            for pool in self._pools:
                taken.append(pool.take(self._owners))
                self._owners[taken[-1]] = owner
        except PoolExhausted:
            self._give_back(taken)
            raise
        self._addresses[owner] = tuple(taken)
        return tuple(taken)

    def release(self, owner: str) -> None:
        """Take an owner's addresses back; one without any is no error."""
        self._give_back(self._addresses.pop(owner, ()))

    def _give_back(self, addresses: Iterable[str]) -> None:
        for address in addresses:
            del self._owners[address]
            for pool in self._pools:
                pool.give_back(address)

    def owner(self, address: str) -> str | None:
        """Who has an address."""
        return self._owners.get(address)

    def set_cidrs(self, cidrs: Iterable[str]) -> None:
        """Serve new pods from these CIDRs; a CIDR that stays goes on where it was.

        Raises:
            ValueError: as ``parse_cidrs``; nothing has changed.
        """
        kept = {pool.network: pool for pool in self._pools}
        self._pools = tuple(kept.get(network) or _Pool(network) for network in parse_cidrs(cidrs))

    def __iter__(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Every owner with its addresses, in order of allocation."""
        return iter(self._addresses.items())


class HostPorts:
    """Ports of the node that pods have taken: (protocol, port) on one of its addresses or on all."""

    def __init__(self) -> None:
        self._taken: dict[tuple[str, int], dict[str, str]] = {}
        self._owned: dict[str, tuple[HostPort, ...]] = {}

    def reserve(self, owner: str, ports: Iterable[HostPort]) -> None:
        """Take ports for an owner, all or none.

        Raises:
            HostPortTaken: another owner, or an earlier entry of the same list, has one of them.
        """
        wanted = tuple(ports)
        done: list[HostPort] = []
        try:
            for protocol, port, address in wanted:
                self._take(owner, protocol, port, address)
                done.append((protocol, port, address))
        except HostPortTaken:
            self._drop(done)
            raise
        if wanted:
            self._owned[owner] = (*self._owned.get(owner, ()), *wanted)

    def release(self, owner: str) -> None:
        """Give an owner's ports back; one without any is no error."""
        self._drop(self._owned.pop(owner, ()))

    def owner(self, protocol: str, port: int, address: str = "") -> str | None:
        """Who has a port at an address (empty: at any)."""
        holders = self._taken.get((protocol, port), {})
        return next((holders[held] for held in holders if _overlap(held, address)), None)

    def _take(self, owner: str, protocol: str, port: int, address: str) -> None:
        holder = self.owner(protocol, port, address)
        if holder is not None:
            raise HostPortTaken(protocol, port, holder)
        self._taken.setdefault((protocol, port), {})["" if address in _ANY_ADDRESS else address] = owner

    def _drop(self, ports: Iterable[HostPort]) -> None:
        for protocol, port, address in ports:
            holders = self._taken[protocol, port]
            del holders["" if address in _ANY_ADDRESS else address]
            if not holders:
                del self._taken[protocol, port]


def _overlap(one: str, other: str) -> bool:
    return one == other or one in _ANY_ADDRESS or other in _ANY_ADDRESS
