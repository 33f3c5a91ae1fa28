"""The entry point of `krang`: every other file of this folder, helpers aside, is a command."""

import argparse
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from pkgutil import iter_modules
from types import ModuleType
from typing import NoReturn

import krang_dynamics

from .. import cli
from ..errors import InputError, KrangError

HELPERS = ('main', 'arguments', 'robot_equations')
FAILED = 2  # exit status
INTERRUPTED = 128 + signal.SIGINT  # exit status, as shells report it


def command() -> None:
    """Entry point of the executable."""
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; an error is one line and status 2."""
    try:
        try:
            options = _parser().parse_args(arguments)
            return int(options.run(options))
        finally:
            sys.stdout.flush()  # a full disk must raise here, not when the interpreter exits
    except KeyboardInterrupt:
        print('\nkrang: stopped', file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:  # the reader, for example `head`, has closed the pipe
        _discard_output()
        return 0
    except OSError as error:
        _discard_output()
        return _fail(': '.join(str(part) for part in (error.filename, error.strerror or error) if part))
    except KrangError as error:
        return _fail(error)


def commands() -> Iterable[ModuleType]:
    """The modules of all commands; each has add_parser(commands) -> parser and run(options) -> status."""
    for module in iter_modules(cli.__path__):
        if module.name not in HELPERS:
            yield import_module(f'.{module.name}', __package__)


class _Parser(argparse.ArgumentParser):
    """argparse, with errors that main() reports in one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see '{self.prog} --help'")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog='krang',
        description='Dynamics and torque control of real robots.',
        epilog="'krang COMMAND --help' describes a command and gives an example.",
    )
    parser.add_argument('--version', action='version', version=f'krang {_version()}')
    parser.set_defaults(run=lambda _: print(parser.format_help(), end='') or 0)
    subparsers = parser.add_subparsers(title='commands', metavar='COMMAND')
    for module in commands():
        module.add_parser(subparsers).set_defaults(run=module.run)
    return parser


def _version() -> str:
    return str(getattr(krang_dynamics, '__version__', None) or version('krang_dynamics'))


def _fail(error: object) -> int:
    print(f'krang: {error}', file=sys.stderr)
    return FAILED


def _discard_output() -> None:
    """Drop buffered output, which the interpreter would otherwise try to write again when it exits."""
    with suppress(OSError):  # an output without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
