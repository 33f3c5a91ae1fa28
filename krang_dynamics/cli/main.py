"""The entry point of `krang`: every other file of this folder, helpers aside, is a command."""

import argparse
import os
import signal
import sys
import traceback
from collections.abc import Iterable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import version
from math import isfinite
from pkgutil import iter_modules
from types import ModuleType
from typing import Any, NoReturn, TextIO

import krang_dynamics

from .. import cli
from ..errors import InputError, KrangError
from .libraries import missing_library

HELPERS = ('main', 'arguments', 'libraries', 'robot_equations')
FAILED = 2  # exit status
INTERRUPTED = 128 + signal.SIGINT  # exit status, as shells report it


def command() -> None:
    """Entry point of the executable."""
    # Matrices are small: the threads of BLAS would wait for each other longer than they compute.
    os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
    sys.exit(main())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status; an error is one line and status 2."""
    _prepare_streams()
    try:
        try:
            options = _parser(arguments).parse_args(arguments)
            return int(options.run(options))
        finally:
            sys.stdout.flush()  # a full disk must raise here, not when the interpreter exits
    except KeyboardInterrupt:
        _print_error('\nkrang: stopped')
        return INTERRUPTED
    except BrokenPipeError:  # the reader, for example `head`, has closed the pipe
        _discard(sys.stdout)
        return 0
    except OSError as error:
        _discard(sys.stdout)
        return _fail(': '.join(str(part) for part in (error.filename, error.strerror or error) if part))
    except ModuleNotFoundError as error:
        return _fail(missing_library(error))
    except MemoryError:
        return _fail('not enough memory; use less data at once')
    except KrangError as error:
        return _fail(error)
    except Exception as error:  # a bug in krang, also reported in one line
        return _fail(f'internal error: {type(error).__name__}: {error} ({_place(error)})')


def commands() -> Iterable[ModuleType]:
    """The modules of all commands; each has PURPOSE, EXAMPLES, add_arguments(parser), run(options) -> int."""
    for module in iter_modules(cli.__path__):
        if module.name not in HELPERS:
            yield import_module(f'.{module.name}', __package__)


class _Parser(argparse.ArgumentParser):
    """argparse, with finite numbers, and errors that main() reports in one line."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.register('type', float, _finite)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message}; see '{self.prog} --help'")


def _finite(text: str) -> float:
    """A number of the command line."""
    with suppress(ValueError):
        if isfinite(value := float(text)):
            return value
    raise argparse.ArgumentTypeError(f'{text!r} is not a finite number')


def _parser(arguments: Sequence[str] | None) -> argparse.ArgumentParser:
    version = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    version.add_argument('--version', action='version', version=f'krang {_version()}')
    version.parse_known_args(list(sys.argv[1:] if arguments is None else arguments)[:1])  # needs no library
    parser = _Parser(
        prog='krang',
        description='Dynamics and torque control of real robots.',
        epilog="'krang COMMAND --help' describes a command and gives an example.",
        parents=[version],
    )
    parser.set_defaults(run=lambda _: print(parser.format_help(), end='') or 0)
    subparsers = parser.add_subparsers(title='commands', metavar='COMMAND')
    for module in commands():
        command = subparsers.add_parser(
            module.__name__.rpartition('.')[2].removesuffix('_'),  # import_, because import is a keyword
            help=module.PURPOSE,
            description=f'{module.PURPOSE[0].upper()}{module.PURPOSE[1:]}.',
            epilog='\n'.join(f'example: {example}' for example in module.EXAMPLES),
            formatter_class=argparse.RawDescriptionHelpFormatter,  # an example stays on one line
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser


def _version() -> str:
    return str(getattr(krang_dynamics, '__version__', None) or version('krang_dynamics'))


def _prepare_streams() -> None:
    """Streams that exist, and that can print every name; an ASCII terminal shows escapes."""
    for name in ('stdout', 'stderr'):
        stream = getattr(sys, name)
        if stream is None:  # closed by the shell, `>&-`
            setattr(sys, name, open(os.devnull, 'w', encoding='utf-8'))  # noqa: SIM115
        elif hasattr(stream, 'reconfigure'):
            stream.reconfigure(errors='backslashreplace')


def _fail(error: object) -> int:
    _print_error(f'krang: {" ".join(line.strip() for line in str(error).splitlines())}')
    return FAILED


def _print_error(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except OSError:  # a full disk; the status remains
        _discard(sys.stderr)


def _place(error: BaseException) -> str:
    """File and line where an exception was raised."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f'{os.path.basename(frame.filename)}:{frame.lineno}'


def _discard(stream: TextIO) -> None:
    """Drop buffered output, which the interpreter would otherwise try to write again when it exits."""
    with suppress(OSError):  # an output without a file, as in tests
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


if __name__ == '__main__':
    command()
