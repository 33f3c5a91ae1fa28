"""Every figure that has a goal, from all benchmarks, in one run of about ten minutes."""

from importlib import import_module

BENCHMARKS = ('model', 'tick', 'startup', 'peers', 'node', 'guard', 'bags')


def run():
    for name in BENCHMARKS:
        for row in import_module(name).run():
            if 'goal' in row:
                yield {key: row[key] for key in ('figure', 'value', 'goal', 'verdict')}
