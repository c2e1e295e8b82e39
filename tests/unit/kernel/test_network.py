"""Addresses of pods, and ports of the node."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from fakecri.kernel.network import HostPorts, HostPortTaken, PodNetwork, PoolExhausted


# -- addresses ---------------------------------------------------------------------------------------------------------
def test_addresses_come_in_order_after_the_gateway() -> None:
    network = PodNetwork(["10.88.0.0/24"])
    assert network.gateways == ("10.88.0.1",)
    assert [network.allocate(f"pod{number}") for number in range(3)] == [("10.88.0.2",), ("10.88.0.3",), ("10.88.0.4",)]


def test_dual_stack_gives_one_of_each_family_in_the_order_of_the_cidrs() -> None:
    assert PodNetwork(["10.0.0.0/24", "fd00::/64"]).allocate("a") == ("10.0.0.2", "fd00::2")
    assert PodNetwork(["fd00::/64", "10.0.0.0/24"]).allocate("a") == ("fd00::2", "10.0.0.2")


@pytest.mark.parametrize(
    ("cidr", "pods"), [("10.0.0.0/30", 1), ("10.0.0.0/28", 13), ("fd00::/126", 2), ("fd00::/120", 254)]
)
def test_a_full_network_says_so_and_has_given_only_usable_addresses(cidr: str, pods: int) -> None:
    network = PodNetwork([cidr])
    given_ = [ipaddress.ip_address(network.allocate(str(number))[0]) for number in range(pods)]
    parsed = ipaddress.ip_network(cidr)
    assert len(set(given_)) == pods
    assert not {parsed[0], parsed[1], *([parsed.broadcast_address] if parsed.version == 4 else [])} & set(given_)
    with pytest.raises(PoolExhausted) as caught:
        network.allocate("one more")
    assert caught.value.cidr == cidr


def test_a_family_that_is_full_takes_nothing_of_the_other() -> None:
    network = PodNetwork(["10.0.0.0/24", "fd00::/126"])
    network.allocate("a")
    network.allocate("b")
    with pytest.raises(PoolExhausted, match="fd00::/126"):
        network.allocate("c")
    assert network.owner("10.0.0.4") is None
    network.release("a")
    assert network.allocate("c")[1] == "fd00::2"


def test_addresses_given_back_come_last_in_their_order() -> None:
    network = PodNetwork(["10.0.0.0/29"])  # .2 to .6
    for owner in "abc":
        network.allocate(owner)
    network.release("b")
    network.release("a")
    assert [network.allocate(owner)[0] for owner in "defg"] == ["10.0.0.5", "10.0.0.6", "10.0.0.3", "10.0.0.2"]


def test_an_owner_keeps_its_addresses_however_often_it_asks() -> None:
    network = PodNetwork(["10.0.0.0/24"])
    assert network.allocate("a") == network.allocate("a")
    network.release("a")
    network.release("a")
    assert dict(network) == {}


def test_new_pods_get_the_new_network_and_old_ones_keep_theirs() -> None:
    network = PodNetwork(["10.0.0.0/24"])
    network.allocate("old")
    network.set_cidrs(["10.1.0.0/24"])
    assert network.allocate("old") == ("10.0.0.2",)
    assert network.allocate("new") == ("10.1.0.2",)
    assert network.cidrs == ("10.1.0.0/24",)
    network.release("old")


def test_an_overlapping_network_never_gives_an_address_twice() -> None:
    network = PodNetwork(["10.0.0.0/24"])
    network.allocate("old")
    network.set_cidrs(["10.0.0.0/16"])
    assert network.allocate("new") == ("10.0.0.3",)
    network.release("old")
    assert network.owner("10.0.0.2") is None


def test_a_network_that_stays_goes_on_where_it_was() -> None:
    network = PodNetwork(["10.0.0.0/24"])
    network.allocate("a")
    network.release("a")
    network.set_cidrs(["10.0.0.0/24", "fd00::/64"])
    assert network.allocate("b") == ("10.0.0.3", "fd00::2")


@pytest.mark.parametrize(
    ("cidrs", "words"),
    [
        ([], "no pod CIDR"),
        (["10.0.0.0"], "no CIDR"),
        (["nonsense/8"], "nonsense"),
        (["10.0.0.0/33"], "10.0.0.0/33"),
        (["10.0.0.0/31"], "no room"),
        (["10.0.0.0/24", "10.1.0.0/24"], "second IPv4"),
    ],
)
def test_bad_networks_are_refused_and_the_old_one_stays(cidrs: list[str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        PodNetwork(cidrs)
    network = PodNetwork(["10.9.0.0/24"])
    with pytest.raises(ValueError, match=words):
        network.set_cidrs(cidrs)
    assert network.cidrs == ("10.9.0.0/24",)


def test_host_bits_of_a_cidr_are_dropped() -> None:
    assert PodNetwork(["10.0.3.7/16"]).cidrs == ("10.0.0.0/16",)


class Addresses(RuleBasedStateMachine):
    """Pods that come and go while the networks move: nobody shares an address."""

    owners = Bundle("owners")

    def __init__(self) -> None:
        super().__init__()
        self.network = PodNetwork(["10.0.0.0/28"])
        self.held: dict[str, tuple[str, ...]] = {}
        self.count = 0

    @rule(target=owners)
    def come(self) -> str:
        self.count += 1
        owner = f"pod{self.count}"
        try:
            self.held[owner] = self.network.allocate(owner)
        except PoolExhausted:
            assert self.network.owner(owner) is None
        return owner

    @rule(owner=owners)
    def go(self, owner: str) -> None:
        self.network.release(owner)
        self.held.pop(owner, None)

    @rule(cidrs=st.sampled_from([["10.0.0.0/28"], ["10.0.0.0/27"], ["10.0.0.8/29", "fd00::/125"], ["fd00::/124"]]))
    def move(self, cidrs: list[str]) -> None:
        self.network.set_cidrs(cidrs)

    @invariant()
    def each_address_has_one_owner(self) -> None:
        assert dict(self.network) == self.held
        addresses = [address for held in self.held.values() for address in held]
        assert len(addresses) == len(set(addresses))


TestAddresses = Addresses.TestCase


# -- host ports --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("first", "second", "taken"),
    [
        (("TCP", 80, ""), ("TCP", 80, ""), True),
        (("TCP", 80, ""), ("TCP", 80, "10.0.0.1"), True),
        (("TCP", 80, "10.0.0.1"), ("TCP", 80, "0.0.0.0"), True),
        (("TCP", 80, "10.0.0.1"), ("TCP", 80, "::"), True),
        (("TCP", 80, "10.0.0.1"), ("TCP", 80, "10.0.0.2"), False),
        (("TCP", 80, ""), ("UDP", 80, ""), False),
        (("TCP", 80, ""), ("SCTP", 80, ""), False),
        (("TCP", 80, ""), ("TCP", 81, ""), False),
    ],
)
def test_a_port_is_taken_by_protocol_number_and_address(
    first: tuple[str, int, str], second: tuple[str, int, str], taken: bool
) -> None:
    ports = HostPorts()
    ports.reserve("a", [first])
    if not taken:
        ports.reserve("b", [second])
        return
    with pytest.raises(HostPortTaken) as caught:
        ports.reserve("b", [second])
    assert (caught.value.owner, caught.value.protocol, caught.value.port) == ("a", *second[:2])
    ports.release("a")
    ports.reserve("b", [second])


def test_all_ports_are_taken_or_none() -> None:
    ports = HostPorts()
    ports.reserve("a", [("TCP", 443, "")])
    with pytest.raises(HostPortTaken):
        ports.reserve("b", [("TCP", 80, ""), ("TCP", 443, "")])
    assert ports.owner("TCP", 80) is None
    with pytest.raises(HostPortTaken):
        ports.reserve("c", [("TCP", 90, ""), ("TCP", 90, "")])
    assert ports.owner("TCP", 90) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["TCP", "UDP"]), st.integers(1, 3), st.sampled_from(["", "10.0.0.1", "10.0.0.2"]))
    )
)
def test_giving_ports_back_leaves_nothing_taken(wanted: list[tuple[str, int, str]]) -> None:
    ports = HostPorts()
    owners = set()
    for number, port in enumerate(wanted):
        before = ports.owner(*port)
        if before is None:
            ports.reserve(f"pod{number}", [port])
            owners.add(f"pod{number}")
            assert ports.owner(*port) == f"pod{number}"
        else:
            assert before in owners
            with pytest.raises(HostPortTaken):
                ports.reserve(f"pod{number}", [port])
    for owner in owners:
        ports.release(owner)
    assert not any(ports.owner(*port) for port in wanted)
