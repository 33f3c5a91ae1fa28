"""Launch files in tests: their arguments, the nodes that they start, and real runs."""

import ast
import os
import signal
import subprocess
import sys
import warnings
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
RUNNER = Path(__file__).parent / 'launch' / 'run_launch_file.py'
PATIENCE = 60.0  # deadline; a loaded machine is slow [s]

needs_launch = pytest.mark.skipif(
    find_spec('launch_ros') is None,
    reason='launch_ros is not installed; it comes with ROS 2 (ros-jazzy-launch-ros) and is not on PyPI',
)


def launch_file(name):
    return ROOT / 'launch' / f'{name}.launch.py'


def defaults(path):
    """The arguments that a file declares, and their defaults; each has to be described."""
    arguments = next(
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and node.targets[0].id == 'ARGUMENTS'
    )
    assert all(description for _, description in arguments.values())
    return {name: default for name, (default, _) in arguments.items()}


def import_launch():
    """The packages, without their own deprecation warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        import launch
        import launch_ros
        import launch_ros.events.lifecycle
    return launch, launch_ros


class Loaded:
    """A launch file with arguments, unfolded as far as that goes without starting anything.

    `leave` tells which entities are not to be unfolded.
    """

    def __init__(self, path, leave=lambda entity: False, **arguments):
        self.launch, self.launch_ros = import_launch()
        self._leave = leave
        self.context = self.launch.LaunchContext()
        self.context.launch_configurations.update(arguments)
        source = self.launch.launch_description_sources.AnyLaunchDescriptionSource(str(path))
        self.entities = list(self.unfold(source.get_launch_description(self.context).entities))

    def unfold(self, entities):
        """Entities and the entities that they expand to; nodes with their command line."""
        quiet = (self.launch.actions.ExecuteProcess, self.launch.actions.RegisterEventHandler)
        for entity in entities:
            if isinstance(entity, self.launch_ros.actions.Node):
                entity.words = self._command_line(entity)
            yield entity
            if not isinstance(entity, quiet) and not self._leave(entity):
                yield from self.unfold(entity.visit(self.context) or ())

    def _command_line(self, node):
        """All words after the executable."""
        node._perform_substitutions(self.context)
        namespace, _, name = node.node_name.rpartition('/')
        words = {'ns': f'__ns:={namespace or "/"}'}
        if node.is_node_name_fully_specified():
            words['name'] = f'__node:={name}'
        self.context.extend_locals({'ros_specific_arguments': words})
        return [self.launch.utilities.perform_substitutions(self.context, word) for word in node.cmd[1:]]

    def nodes(self, entities=None):
        """By executable."""
        kind = self.launch_ros.actions.Node
        found = self.entities if entities is None else entities
        return {entity.node_executable: entity for entity in found if isinstance(entity, kind)}


def told(harness, words):
    """A real node with this command line: its name, its parameters, its topic names."""
    import rclpy

    node = rclpy.create_node(
        'unnamed',
        context=harness.context,
        cli_args=words[words.index('--ros-args') :],
        use_global_arguments=False,
        automatically_declare_parameters_from_overrides=True,
    )
    harness.at_end(node.destroy_node)
    return node


class Launch:
    """A launch file in a process group of its own, as ^C reaches it; it ends with the harness."""

    def __init__(self, harness, environment, path, **arguments):
        self._harness = harness
        self._log = harness.folder / 'launch.log'
        variables = {'ROS_DOMAIN_ID': str(harness.domain), 'ROS_LOG_DIR': str(harness.folder)}
        words = [f'{name}:={text}' for name, text in arguments.items()]
        with self._log.open('w') as log:
            self._process = subprocess.Popen(
                [sys.executable, str(RUNNER), str(path), *words],
                env={**environment, **variables, 'ROS_HOME': str(harness.folder), 'PYTHONUNBUFFERED': '1'},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        harness.at_end(self.kill)

    @property
    def log(self):
        return self._log.read_text(errors='replace')

    def until(self, condition, what):
        """Wait until a condition holds; the log, if it never does."""
        try:
            self._harness.until(condition, what, PATIENCE)
        except AssertionError as error:
            raise AssertionError(f'{error}\n{self.log}') from None

    def control_c(self):
        os.killpg(self._process.pid, signal.SIGINT)

    def status(self):
        """The exit status, once all processes have ended by themselves."""
        self.until(lambda: self._process.poll() is not None, 'the end of the launch')
        assert 'escalating' not in self.log
        with pytest.raises(ProcessLookupError):
            os.killpg(self._process.pid, 0)
        return self._process.returncode

    def kill(self):
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
