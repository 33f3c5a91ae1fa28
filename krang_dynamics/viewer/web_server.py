"""viser's web server behind the access rules."""

import contextlib
import io
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

import viser
import websockets.asyncio.server as websockets_server
from viser._messages import ShareUrlDisconnect, ShareUrlRequest
from websockets import Headers
from websockets.http11 import Request, Response

from ..errors import KrangError
from .access import Access, Role

LARGEST_MESSAGE = 2**16  # from a browser [bytes]
HEADERS = {
    'Content-Security-Policy': "frame-ancestors 'none'",  # no other page shows ours under its own buttons
    'Referrer-Policy': 'no-referrer',  # the address has the token
    'Cache-Control': 'no-store',
}
REFUSAL = 'Refused. Open the address that krang view has printed.\n'


def start_server(host: str, port: int, access: Access, title: str) -> viser.ViserServer:
    """viser's server, which asks `access` about every request; the next free port from `port` on."""
    serve, guarded = websockets_server.serve, []

    def guarded_serve(handler: Any, *place: Any, process_request: Any, **options: Any) -> Any:
        guarded.append(True)
        return serve(
            _by_role(handler),
            *place,
            process_request=_checked(process_request, access),
            **{**options, 'max_size': LARGEST_MESSAGE},
        )

    # viser has no way to refuse a connection, so its call of the websockets library is replaced.
    websockets_server.serve = guarded_serve  # type: ignore[assignment,misc]
    try:
        with contextlib.redirect_stdout(io.StringIO()):  # its own address has no token
            server = viser.ViserServer(host, port, label=title, verbose=False)
    finally:
        websockets_server.serve = serve  # type: ignore[misc]
    if not guarded:
        server.stop()
        raise KrangError(f'viser {viser.__version__} cannot be protected; pip install "viser>=1.1,<1.2"')
    # A browser could otherwise ask for a tunnel from the internet.
    for message in (ShareUrlRequest, ShareUrlDisconnect):
        server._connection.unregister_handler(message)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def _checked(answer: Callable[[Any, Request], Response | None], access: Access) -> Any:
    """viser's answer to a request, after the check; the token is not a part of the path for viser."""

    def process(connection: Any, request: Request) -> Response | None:
        headers = request.headers
        hosts, origins = headers.get_all('Host'), headers.get_all('Origin')
        is_websocket = headers.get('Upgrade', '').lower() == 'websocket'
        role = Role.NOBODY
        if len(hosts) == 1 and len(origins) <= 1:
            role = access.role(request.path, hosts[0], origins[0] if origins else None, is_websocket)
        connection.role = role
        if role is Role.NOBODY:
            text = REFUSAL.encode()
            plain = Headers({'Content-Type': 'text/plain', 'Content-Length': str(len(text))})
            return Response(HTTPStatus.FORBIDDEN, 'Forbidden', plain, text)
        if is_websocket:
            return None
        response = answer(connection, Request('/', headers))
        if response is not None:
            response.headers.update(HEADERS)
        return response

    return process


def _by_role(handler: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """viser's handler of a connection; it receives nothing from anyone but an operator."""

    async def handle(connection: Any) -> None:
        is_operator = connection.role is Role.OPERATOR
        await handler(connection if is_operator else _SendOnly(connection))

    return handle


class _SendOnly:
    """A connection whose received messages are discarded before they are decoded."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def recv(self) -> Any:
        while True:
            await self._connection.recv()
