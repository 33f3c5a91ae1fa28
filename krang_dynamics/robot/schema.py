"""Conversion between YAML and dataclasses, with errors that name the file, the key and the remedy."""

import dataclasses
import re
import sys
import types
import typing
from collections import Counter
from collections.abc import Hashable
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import yaml

from ..errors import ConfigError, suggestion

T = TypeVar('T')


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file; a repeated key is an error, and 1e-5 is a number."""
    try:
        data = _parsed(path.read_text(encoding='utf-8'))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f'{path}: cannot be read as text: {error}') from error
    except (yaml.YAMLError, ValueError) as error:  # an invalid date is a ValueError
        raise ConfigError(f'{path}: is not YAML: {" ".join(str(error).split())}') from error
    if not isinstance(data, dict):
        raise ConfigError(f'{path}: is {_kind(data)}; a robot file is a mapping, as krang new writes')
    return data


def load_yaml(path: str) -> Any:
    """The content of any YAML file; a repeated key is an error."""
    try:
        return _parsed(Path(path).read_text(encoding='utf-8'))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f'{path}: cannot be read as YAML: {error}') from None


def _parsed(text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except RecursionError:
        raise yaml.YAMLError('it is nested too deeply') from None


def build(cls: type[T], data: Any, source: str, key: str = '') -> T:
    """An instance of the dataclass `cls` from plain data found in `source` under `key`."""
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    if not isinstance(data, dict):
        raise _error(source, key, f'is {_kind(data)}; it needs the keys {", ".join(fields)}')
    for name in data:
        if name not in fields:
            raise _error(source, _join(key, name), f'is not a known key{suggestion(name, fields)}')
    hints = typing.get_type_hints(cls)
    values = {}
    for name, field in fields.items():
        if name in data:
            values[name] = _convert(hints[name], data[name], source, _join(key, name))
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise _error(source, _join(key, name), f'is missing; add {_expected(hints[name])}')
    try:
        return cls(**values)
    except ConfigError as error:  # from __post_init__
        raise _error(source, key, str(error)) from None


def to_yaml(instance: Any) -> str:
    """YAML text of a dataclass without its unset entries; build() accepts its data."""
    return yaml.safe_dump(
        _plain(dataclasses.asdict(instance)), sort_keys=False, allow_unicode=True, width=100
    )


def _plain(value: Any) -> Any:
    """YAML data: unset entries left out, tuples as lists."""
    if isinstance(value, dict):
        return {key: _plain(entry) for key, entry in value.items() if entry is not None and entry != {}}
    return [_plain(entry) for entry in value] if isinstance(value, (tuple, list)) else value


def _convert(hint: Any, value: Any, source: str, key: str) -> Any:
    origin, arguments = get_origin(hint), get_args(hint)
    if hasattr(value, 'tolist'):  # overrides may be numpy arrays
        value = value.tolist()
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        return _convert(next(a for a in arguments if a is not type(None)), value, source, key)
    if dataclasses.is_dataclass(hint):
        return build(hint, value, source, key)  # type: ignore[arg-type]
    if origin is dict and isinstance(value, dict):
        return {str(k): _convert(arguments[1], v, source, _join(key, k)) for k, v in value.items()}
    if origin is tuple and isinstance(value, (list, tuple)):
        return _convert_tuple(hint, value, source, key)
    if origin is Literal and value in arguments and not isinstance(value, bool):
        return value
    if hint is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        if abs(value) <= sys.float_info.max:  # an integer can be too large for a float
            return float(value)
    elif hint in (bool, str) and isinstance(value, hint):
        return value
    raise _error(source, key, f'is {_kind(value)}; it must be {_expected(hint)}')


def _convert_tuple(hint: Any, values: Any, source: str, key: str) -> tuple[Any, ...]:
    arguments = get_args(hint)
    if arguments[-1] is Ellipsis:
        arguments = arguments[:1] * len(values)
    if len(values) != len(arguments):
        raise _error(source, key, f'has {len(values)} entries; it must be {_expected(hint)}')
    return tuple(
        _convert(a, v, source, f'{key}[{i}]') for i, (a, v) in enumerate(zip(arguments, values, strict=True))
    )


def _expected(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _expected(next(a for a in arguments if a is not type(None)))
    if origin is Literal:
        return 'one of ' + ', '.join(map(repr, arguments))
    if origin is tuple:
        if arguments[-1] is Ellipsis:
            return f'a list, each {_expected(arguments[0])}'
        return f'a list of {len(arguments)}, each {_expected(arguments[0])}'
    if origin is dict:
        return f'a mapping of names to {_expected(arguments[1])}'
    if dataclasses.is_dataclass(hint):
        return f'a mapping with {", ".join(f.name for f in dataclasses.fields(hint))}'
    return {float: 'a finite number', bool: 'true or false', str: 'text'}[hint]


def _kind(value: Any) -> str:
    return 'empty' if value is None else f'{type(value).__name__} {value!r}'


def _join(key: str, name: object) -> str:
    return f'{key}.{name}' if key else str(name)


def _error(source: str, key: str, message: str) -> ConfigError:
    return ConfigError(f'{source}: {key + " " if key else ""}{message}')


class UniqueKeys:
    """Part of a loader of PyYAML, which refuses repeated keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]  # type: ignore[attr-defined]
        counts = Counter(key for key in keys if isinstance(key, Hashable))  # the base class refuses others
        for key, count in counts.items():
            if count > 1:
                raise yaml.constructor.ConstructorError(
                    None, None, f'the key {key!r} occurs twice; keep one', node.start_mark
                )
        return super().construct_mapping(node, deep)  # type: ignore[misc]


class _Loader(UniqueKeys, yaml.SafeLoader):
    """PyYAML's safe loader, which refuses repeated keys and reads 1e-5 as a number."""


_Loader.add_implicit_resolver(
    'tag:yaml.org,2002:float', re.compile(r'^[-+]?\d+(\.\d*)?[eE][-+]?\d+$'), list('-+0123456789')
)
