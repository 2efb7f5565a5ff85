"""The network of a cluster: a namespace for each node and one for etcd, where that is allowed.

Only the nodes and etcd use it: clients connect over Unix sockets, which namespaces do not separate.
So a node can be cut off from its cluster while its clients still reach it, and no interface outside
these namespaces is changed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess

_HUB = "10.77.0.1"


class Loopback:
    """All on 127.0.0.1, without partitions."""

    can_partition = False
    hub = "127.0.0.1"

    def __init__(self, nodes: int) -> None:
        self.addresses = [self.hub] * nodes

    def prefix(self, number: int | None) -> list[str]:
        """What a command begins with to run on a node, or on none."""
        return []

    def free_port(self) -> int:
        with socket.socket() as found:
            found.bind((self.hub, 0))
            return int(found.getsockname()[1])

    def cut(self, number: int) -> None:
        raise AssertionError("no partition without namespaces")

    def join(self, number: int) -> None: ...

    def close(self) -> None: ...


class Namespaces(Loopback):
    """A bridge in a namespace of its own, with a link to each node."""

    can_partition = True
    hub = _HUB

    def __init__(self, nodes: int) -> None:
        self.addresses = [f"10.77.0.{number + 11}" for number in range(nodes)]
        self._hub_name = f"freehold-{os.getpid()}-hub"
        self._names = [f"freehold-{os.getpid()}-{number}" for number in range(nodes)]
        self._next_port = 20000
        try:
            self._create()
        except BaseException:
            self.close()
            raise

    def _create(self) -> None:
        hub = self._hub_name
        for name in (hub, *self._names):
            _ip("netns", "add", name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", hub, "link", "add", "bridge", "type", "bridge")
        _ip("-n", hub, "address", "add", f"{_HUB}/24", "dev", "bridge")
        _ip("-n", hub, "link", "set", "bridge", "up")
        for number, (name, address) in enumerate(zip(self._names, self.addresses, strict=True)):
            pair = ("type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", hub, "link", "add", f"node{number}", *pair)
            _ip("-n", hub, "link", "set", f"node{number}", "master", "bridge", "up")
            _ip("-n", name, "address", "add", f"{address}/24", "dev", "eth0")
            _ip("-n", name, "link", "set", "eth0", "up")

    def prefix(self, number: int | None) -> list[str]:
        name = self._hub_name if number is None else self._names[number]
        return ["ip", "netns", "exec", name]

    def free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    def cut(self, number: int) -> None:
        _ip("-n", self._hub_name, "link", "set", f"node{number}", "down")

    def join(self, number: int) -> None:
        _ip("-n", self._hub_name, "link", "set", f"node{number}", "up")

    def close(self) -> None:
        for name in (self._hub_name, *self._names):
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


def network_for(nodes: int) -> Loopback:
    """With namespaces, if this account may create them."""
    if os.geteuid() == 0 and shutil.which("ip") is not None:
        try:
            return Namespaces(nodes)
        except subprocess.CalledProcessError:
            pass
    return Loopback(nodes)


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
