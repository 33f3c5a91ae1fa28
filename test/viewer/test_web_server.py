"""The real server: who is let in, and whose messages count."""

import asyncio
import http.client
import urllib.error
import urllib.request

import msgspec
import pytest
import viser
import websockets
from viewer.protocol_browser import CAMERA

from krang_dynamics.viewer.access import Access
from krang_dynamics.viewer.web_server import start_server

TOKEN = 'secret-of-this-user'


@pytest.fixture(scope='module')
def server():
    server = start_server('localhost', 8480, Access('localhost', TOKEN), 'test')
    yield server
    server.stop()


@pytest.fixture(scope='module')
def clicks(server):
    """Browsers that have clicked a button, and the forged message that clicks it."""
    button, clicks = server.gui.add_button('go'), []
    button.on_click(lambda event: clicks.append(event.client_id))
    return clicks, {'type': 'GuiUpdateMessage', 'uuid': button._impl.uuid, 'updates': {'value': True}}


def get(server, path='/', **headers):
    request = urllib.request.Request(f'http://localhost:{server.get_port()}{path}', headers=headers)
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as error:
        return error.code, error.headers


def connect_and_send(server, path, origin, *messages):
    """Send messages as a browser would; whether the connection was accepted."""

    async def talk():
        address = f'ws://localhost:{server.get_port()}{path}'
        protocol = websockets.Subprotocol(f'viser-v{viser.__version__}')
        try:
            async with websockets.connect(
                address, origin=origin, subprotocols=[protocol], max_size=None
            ) as socket:
                await asyncio.wait_for(socket.recv(), 10)
                for message in messages:
                    data = message if isinstance(message, bytes) else msgspec.msgpack.encode(message)
                    await socket.send(data)
                await asyncio.sleep(0.5)
                return True
        except websockets.InvalidStatus:
            return False

    return asyncio.run(talk())


def test_the_page_is_served_with_and_without_the_token_but_in_no_frame(server):
    for path in ('/', f'/{TOKEN}/'):
        status, headers = get(server, path)
        assert status == 200
        assert headers['Content-Security-Policy'] == "frame-ancestors 'none'"
        assert headers['Referrer-Policy'] == 'no-referrer'


def test_foreign_hosts_origins_and_tokens_are_refused(server):
    assert get(server, Host='evil.example')[0] == 403
    assert get(server, Origin='http://evil.example')[0] == 403
    assert get(server, '/wrong/')[0] == 403
    own = f'http://localhost:{server.get_port()}'
    assert not connect_and_send(server, f'/{TOKEN}', 'http://evil.example')
    assert not connect_and_send(server, f'/{TOKEN}', None)
    assert not connect_and_send(server, '/wrong', own)


@pytest.mark.parametrize('name', ['Host', 'Origin'])
def test_a_request_with_a_second_foreign_header_is_refused(server, name):
    own = f'localhost:{server.get_port()}'
    connection = http.client.HTTPConnection(own)
    connection.putrequest('GET', f'/{TOKEN}/', skip_host=True)
    for header, value in (('Host', own), ('Origin', f'http://{own}'), (name, 'evil.example')):
        connection.putheader(header, value)
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


@pytest.mark.slow
def test_an_operator_clicks_and_a_forged_message_of_an_observer_changes_nothing(server, clicks):
    own, (clicked, click) = f'http://localhost:{server.get_port()}', clicks
    assert connect_and_send(server, '/', own, CAMERA, click, b'\xff invalid', click)
    assert clicked == []
    assert not server.get_clients()
    assert connect_and_send(server, f'/{TOKEN}', own, CAMERA, click)
    assert len(clicked) == 1


def test_no_browser_can_open_a_tunnel_from_the_internet(server):
    handlers = {kind.__name__ for kind in server._connection._incoming_handlers}
    assert 'GuiUpdateMessage' in handlers
    assert not {'ShareUrlRequest', 'ShareUrlDisconnect'} & handlers
