"""Keep a Python process off the network, loopback excepted: tests and notebooks must run on a machine without one."""

import ipaddress
import socket
import sys

_forbidden = False
_installed = False


def is_local(host):
    """Return True if this host, a name or an address, is this machine."""
    if isinstance(host, bytes):
        host = host.decode("ascii", "replace")
    if host in (None, "", "localhost", socket.gethostname()):
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:  # a name, which would be looked up
        return False
    return address.is_loopback or address.is_unspecified


def _audit(event, args):
    if not _forbidden or not event.startswith("socket."):
        return
    if event in ("socket.connect", "socket.sendto"):
        sock, address = args
        if sock.family not in (socket.AF_INET, socket.AF_INET6) or not isinstance(address, tuple):
            return
        host = address[0]
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        host = args[0]
    else:
        return
    if not is_local(host):
        raise NetworkForbidden(f"{event} to {host!r}: tests and notebooks run without a network")


class NetworkForbidden(BaseException):
    """A connection that leaves this machine.

    Not an Exception: code that takes any error for "no network here" must not hide it.
    """


def forbid(yes=True):
    """Forbid every connection that leaves this machine, or allow them again. Audit hooks see C code too."""
    global _forbidden, _installed
    if yes and not _installed:
        sys.addaudithook(_audit)
        _installed = True
    _forbidden = yes
