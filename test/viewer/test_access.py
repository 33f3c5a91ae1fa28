"""Token, Host and Origin; each wrong one alone is refused."""

import stat

import pytest

from krang_dynamics.errors import InputError
from krang_dynamics.viewer.access import Access, Role, stored_token

TOKEN = 'secret-of-this-user'
LOCAL = Access('localhost', TOKEN)
OWN = 'http://localhost:8080'


@pytest.mark.parametrize(
    ('path', 'host', 'origin', 'role'),
    [
        (f'/{TOKEN}', 'localhost:8080', OWN, Role.OPERATOR),
        (f'/{TOKEN}/?websocket=x', 'localhost:9000', 'http://localhost:9000', Role.OPERATOR),  # ssh -L 9000
        (f'/{TOKEN}', '[::1]:8080', 'http://[::1]:8080', Role.OPERATOR),
        ('/', 'localhost:8080', OWN, Role.OBSERVER),
        ('/wrong', 'localhost:8080', OWN, Role.NOBODY),
        (f'/{TOKEN}', 'localhost:8080', 'http://evil.example', Role.NOBODY),
        (f'/{TOKEN}', 'localhost:8080', 'http://localhost:3000', Role.NOBODY),  # another local website
        (f'/{TOKEN}', 'localhost:8080', 'null', Role.NOBODY),  # a file or a sandboxed frame
        (f'/{TOKEN}', 'localhost:8080', None, Role.NOBODY),
        (f'/{TOKEN}', 'evil.example:8080', 'http://evil.example:8080', Role.NOBODY),  # DNS rebinding
        (f'/{TOKEN}', None, OWN, Role.NOBODY),
    ],
)
def test_the_role_of_a_websocket(path, host, origin, role):
    assert LOCAL.role(path, host, origin, is_websocket=True) is role


def test_a_browser_that_loads_the_page_sends_no_origin():
    assert LOCAL.role(f'/{TOKEN}/', 'localhost:8080', None, is_websocket=False) is Role.OPERATOR
    assert LOCAL.role(f'/{TOKEN}/', 'localhost:8080', 'http://evil.example', False) is Role.NOBODY


def test_without_a_token_nobody_operates():
    access = Access('0.0.0.0', None)
    for path in ('/', '/None', '//'):
        assert access.role(path, '192.168.0.7:8080', 'http://192.168.0.7:8080', True) is not Role.OPERATOR
    assert access.role('/', '192.168.0.7:8080', 'http://192.168.0.7:8080', True) is Role.OBSERVER


def test_the_token_is_private_and_stays(monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_STATE_HOME', str(tmp_path))
    token = stored_token()
    assert token == stored_token()
    assert len(token) >= 32
    (file,) = tmp_path.rglob('page_token')
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    with pytest.raises(InputError, match='delete it'):
        stored_token()
