"""Names and addresses of hosts: each has one of its own, and what no host can have is refused where it is asked for."""

from __future__ import annotations

import ipaddress
import re

from simkit.errors import wrong

__all__ = ["OUTSIDE", "OUTSIDE_ADDRESS", "Addresses"]

#: The place of everything that belongs to no host.
OUTSIDE = "outside"
OUTSIDE_ADDRESS = "10.255.255.254"
HOSTS_MAX = 65_000
#: As of names on the internet (RFC 1123), and underscores.
_NAME = re.compile(
    r"(?=.{1,253}\Z)[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*"
)
_RESERVED = (OUTSIDE, "localhost")


class Addresses:
    """Those of one world's hosts."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._taken: dict[str, str] = {OUTSIDE_ADDRESS: OUTSIDE}
        self._next = 1

    def give(self, name: str, address: str | None) -> str:
        """The address of a new host: `address`, or the next one that is free."""
        self._check_name(name)
        if address is None:
            address = self._free()
        else:
            self._check_address(address)
        self._names[name] = address
        self._taken[address] = name
        return address

    def _check_name(self, name: str) -> None:
        option = "World.host: name"
        if name in self._names:
            hint = "world.host(name) gives the one that is there"
            raise wrong(option, name, f"a name that no host has: there is one, at {self._names[name]}", hint)
        if type(name) is not str or not _NAME.fullmatch(name) or _is_address(name):
            raise wrong(option, name, "a host name: letters, digits, dots, hyphens and underscores, 253 at most")
        if name.lower() in _RESERVED:
            raise wrong(option, name, f"another name: {' and '.join(_RESERVED)} mean something already")
        if len(self._names) >= HOSTS_MAX:
            raise wrong(option, name, f"at most {HOSTS_MAX} hosts")

    def _check_address(self, address: str) -> None:
        option = "World.add_host: address"
        try:
            parsed = ipaddress.IPv4Address(address)
        except ValueError:
            raise wrong(option, address, "an IPv4 address, such as 10.1.0.7") from None
        if parsed.is_loopback or parsed.is_unspecified or parsed.is_multicast or parsed.is_reserved:
            raise wrong(option, address, "the address of one host: no loopback, multicast or reserved one")
        if address in self._taken:
            raise wrong(option, address, f"an address that nobody has: it is that of {self._taken[address]!r}")

    def _free(self) -> str:
        while True:
            address = f"10.0.{self._next >> 8}.{self._next & 255}"
            self._next += 1
            if address not in self._taken:
                return address


def _is_address(name: str) -> bool:
    return name.replace(".", "").isdigit() and "." in name
