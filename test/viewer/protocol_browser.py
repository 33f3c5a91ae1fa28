"""A browser without a screen: it speaks viser's protocol, receives the page, and clicks its buttons."""

import asyncio
import time
from contextlib import suppress
from threading import Thread

import msgspec
import viser
import websockets
import zstandard

CAMERA = {
    'type': 'ViewerCameraMessage', 'wxyz': [1.0, 0.0, 0.0, 0.0], 'position': [1.0, 1.0, 1.0], 'fov': 1.0,
    'near': 0.01, 'far': 100.0, 'image_height': 600, 'image_width': 800, 'look_at': [0.0, 0.0, 0.0],
    'up_direction': [0.0, 0.0, 1.0],
}  # fmt: skip


class ProtocolBrowser:
    """Connects to the address of a page and keeps all messages; a context."""

    def __init__(self, url):
        self._host, self._address = url.split('/')[2], f'ws{url[4:].rstrip("/")}'
        self.messages, self.bytes = [], 0
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_until_complete, args=(self._talk(),))

    def __enter__(self):
        self._thread.start()
        self.until(lambda: self.messages, 'the page')
        return self

    def __exit__(self, *_):
        self._loop.call_soon_threadsafe(self._receiver.cancel)
        self._thread.join()
        self._loop.close()

    async def _talk(self):
        protocol = websockets.Subprotocol(f'viser-v{viser.__version__}')
        async with websockets.connect(
            self._address, origin=f'http://{self._host}', subprotocols=[protocol], max_size=None
        ) as self._socket:
            await self._socket.send(msgspec.msgpack.encode(CAMERA))
            self._receiver = asyncio.create_task(self._receive())
            with suppress(asyncio.CancelledError):
                await self._receiver

    async def _receive(self):
        async for data in self._socket:
            self.bytes += len(data)
            self.messages += messages_of(data)

    def until(self, condition, what, patience=20.0):
        deadline = time.monotonic() + patience
        while not condition():
            assert time.monotonic() < deadline, f'waited for {what}'
            time.sleep(0.01)

    @property
    def buttons(self):
        """Labels of the buttons, and their identities."""
        found = [m for m in list(self.messages) if m['type'] == 'GuiButtonMessage']
        return {message['props']['label']: message['uuid'] for message in found}

    @property
    def orders(self):
        """Labels of all elements, and their places."""
        found = [m['props'] for m in list(self.messages) if 'order' in m.get('props', ())]
        return {props.get('label'): props['order'] for props in found}

    @property
    def titles(self):
        """Of the questions that were asked."""
        return [m['title'] for m in list(self.messages) if m['type'] == 'GuiModalMessage']

    @property
    def answers(self):
        """Titles and texts of the notifications."""
        shown = [m['props'] for m in list(self.messages) if m['type'] == 'NotificationShowMessage']
        return [(props['title'], props['body']) for props in shown]

    def click(self, label):
        self.until(lambda: label in self.buttons, f'the button {label!r}')
        self.send({'type': 'GuiUpdateMessage', 'uuid': self.buttons[label], 'updates': {'value': True}})

    def send(self, message):
        data = msgspec.msgpack.encode(message)
        asyncio.run_coroutine_threadsafe(self._socket.send(data), self._loop).result(10)


def messages_of(data):
    """The messages in one frame of viser's protocol."""
    compressed = int.from_bytes(data[8:16], 'little')
    text = zstandard.ZstdDecompressor().decompress(data[16 : 16 + compressed])
    return msgspec.msgpack.decode(text)['messages']
