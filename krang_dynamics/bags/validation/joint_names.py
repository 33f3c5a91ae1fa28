"""Joint names of a recording mapped to those of a robot, by rules of the user; likely rules are suggested."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from ...errors import BagError


def renamed(names: Iterable[str], maps: Sequence[str]) -> dict[str, str]:
    """Name in the recording -> name after the rules 'FROM=TO'; a * matches the same text on both sides."""
    result = {name: name for name in names}
    for rule in maps:
        left, equals, right = rule.partition('=')
        if not (left and equals and right) or left.count('*') != right.count('*') or left.count('*') > 1:
            raise BagError(f"--map {rule!r}: write 'FROM=TO', with one * on each side or none")
        pattern = re.compile(re.escape(left).replace(r'\*', '(.*)'))
        matches = {name: found for name in result if (found := pattern.fullmatch(name))}
        if not matches:
            raise BagError(f'--map {rule!r}: no joint of the recording matches; it has {", ".join(result)}')
        for name, found in matches.items():
            result[name] = right.replace('*', found.group(1)) if found.groups() else right
    twice = [name for name in result.values() if list(result.values()).count(name) > 1]
    if twice:
        raise BagError(f'--map: two joints of the recording become {twice[0]!r}')
    return result


def hint(missing: Sequence[str], unused: Sequence[str]) -> str:
    """A suggestion for mapping unused names to the missing ones; empty if there is none."""
    if not unused:
        return ''
    for theirs in unused:
        rule = _rule(theirs, missing[0])
        if rule and set(missing) <= set(renamed(unused, [rule]).values()):
            return f"; try --map '{rule}'"
    close = get_close_matches(missing[0], unused, n=1)
    return f"; try --map '{close[0]}={missing[0]}'" if close else ''


def _rule(theirs: str, ours: str) -> str:
    """A pattern that replaces the part before a common number at the end; '' if there is none."""
    common = 0
    while common < min(len(theirs), len(ours)) and theirs[-1 - common] == ours[-1 - common]:
        common += 1
    number = re.search(r'\d+$', theirs)
    if not number or common < len(number.group()):
        return ''
    return f'{theirs[: number.start()]}*={ours[: len(ours) - len(number.group())]}*'
