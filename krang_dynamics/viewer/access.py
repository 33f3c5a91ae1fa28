"""Who may watch the page and who may operate the robot: token, Host and Origin of a request."""

import os
import secrets
from collections.abc import Collection
from enum import Enum
from ipaddress import ip_address
from pathlib import Path
from socket import getfqdn, gethostname

from ..errors import InputError

LOOPBACK = ('localhost', '127.0.0.1', '::1')


class Role(Enum):
    """What a browser may do."""

    NOBODY = 'nobody'  # refused
    OBSERVER = 'observer'  # sees everything; whatever it sends is discarded
    OPERATOR = 'operator'


class Access:
    """Judges requests. Any website in a browser on this machine can reach a local port, hence the checks.

    The first part of the path is the token. Only a request with the token comes from an operator.
    """

    def __init__(self, host: str, token: str | None) -> None:
        self._token = token  # None: nobody operates
        self._names = _own_names(host)

    def role(self, path: str, host: str | None, origin: str | None, is_websocket: bool) -> Role:
        """The role of a request with this path, Host and Origin; a browser's websocket has an Origin."""
        if host is None or not self._is_own(host):
            return Role.NOBODY
        if origin != f'http://{host}' and (is_websocket or origin is not None):
            return Role.NOBODY
        given = path.partition('?')[0].strip('/').partition('/')[0]
        if not given:
            return Role.OBSERVER
        is_known = self._token is not None and secrets.compare_digest(given.encode(), self._token.encode())
        return Role.OPERATOR if is_known else Role.NOBODY

    def _is_own(self, host: str) -> bool:
        """Whether a Host header names this machine: an address, or one of its names.

        A foreign name that resolves to this machine (DNS rebinding) is refused.
        """
        name = host.rpartition(':')[0] if host.rpartition(':')[2].isdigit() else host
        name = name.removeprefix('[').removesuffix(']').lower()
        return name in self._names or _is_address(name)


def is_local(host: str) -> bool:
    """Whether a server on this host can be reached from this machine alone."""
    return host in LOOPBACK


def stored_token() -> str:
    """The operator's token, in a file that only this user can read.

    It stays the same, so that an open page reconnects after the server was restarted.
    """
    state = os.environ.get('XDG_STATE_HOME') or Path.home() / '.local' / 'state'
    file = Path(state) / 'krang_dynamics' / 'page_token'
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(descriptor, 'w') as new:
                new.write(secrets.token_urlsafe(24))
        token = file.read_text(encoding='ascii').strip()
        if file.stat().st_mode & 0o077 or len(token) < 16:
            raise InputError(f'{file}: other users can read it, or it is damaged; delete it')
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f'{file}: the token of the page cannot be stored: {error}') from None
    return token


def _own_names(host: str) -> Collection[str]:
    machine = {gethostname().lower(), getfqdn().lower(), f'{gethostname().lower()}.local'}
    return {*LOOPBACK, host.lower()} | (set() if is_local(host) else machine)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
