"""Tests and notebooks stay on this machine (conftest.py sees to it for tests, tools/notebook.py for kernels)."""

import socket

import pytest

from tools import no_network

ELSEWHERE = "192.0.2.1"  # an address kept for examples (RFC 5737): nothing answers there


@pytest.mark.parametrize(
    "call",
    [
        lambda: socket.create_connection((ELSEWHERE, 80), timeout=1),
        lambda: socket.create_connection(("raw.githubusercontent.com", 443), timeout=1),
        lambda: socket.gethostbyname("example.org"),
        lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", (ELSEWHERE, 53)),
    ],
)
def test_nothing_leaves_the_machine(call):
    with pytest.raises(no_network.NetworkForbidden):
        try:
            call()
        except Exception as error:  # as code does that takes any error for 'no network here'
            pytest.fail(f"not stopped by the guard: {error!r}")


def test_loopback_works():
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(("localhost", server.getsockname()[1]), timeout=5) as client:
            server.accept()[0].close()
            assert client.recv(1) == b""


@pytest.mark.parametrize("host", [None, "", "localhost", b"127.0.0.1", "127.1.2.3", "::1", "::1%lo", "0.0.0.0"])
def test_local(host):
    assert no_network.is_local(host)


@pytest.mark.parametrize("host", ["example.org", ELSEWHERE, "10.0.0.1", "2001:db8::1", b"example.org", "localhost.org"])
def test_not_local(host):
    assert not no_network.is_local(host)
