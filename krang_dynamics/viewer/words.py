"""State, faults, joints and parameters in words, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from .. import colours
from ..arrays import Array
from ..bags.observed_robot import Report, Snapshot
from ..control.node_state import NodeState
from ..robot.model import Robot

OLD = 0.5  # age at which joint states count as missing [s]
MODE_COLOURS = {
    'active': colours.GOOD, 'relaying': colours.GOOD, 'ramping': colours.WARNING,
    'stopping': colours.WARNING, 'fault': colours.BAD,
}  # fmt: skip
NEXT_STEPS = {  # by kind of fault
    'state': 'Check that all joint states arrive, at their usual rate and with valid stamps.',
    'clock': 'Check the clock of the node and of the simulation.',
    'velocity': 'Find out what moved the robot. Bring it to rest.',
    'position': 'Move the joint back into its limits by hand or with the brakes open.',
    'following_error': 'Look for an obstacle, a wrong payload, or a motion that is too fast.',
    'collision': 'Remove what the robot has touched.',
    'delay': 'States are too old for these gains: lower the gains, or shorten the delay.',
    'emergency_stop': 'When the danger is over, release the emergency stop.',
    'deadman': 'Hold the enabling switch again.',
    'guard': 'Start the guard again, or clear its own fault first.',
    'publisher': 'End the other node that sends commands to these drivers.',
    'silence': 'Start the controller again.',
    'command': 'The controller sent a command that the guard refused: look at its log.',
    'torque': 'A term gave a torque that is not finite: look at the log of the controller.',
    'term': 'A term failed: look at the log of the controller.',
    'exception': 'Look at the log of the node, and report it as a bug.',
}
WAYS_ON = {
    'inactive': 'Activate the controller: ros2 lifecycle set {node} activate',
    'disabled': 'No torque is sent. Enable to start.',
    'ramping': 'Torque ramps up.',
    'active': 'Torque follows the control terms.',
    'stopping': 'The stop policy runs. Wait until the robot is at rest.',
    'fault': 'Then clear the fault, and enable.',
}
STYLE = (
    '<style>.k{font:12.5px/1.4 system-ui,sans-serif;padding:2px 10px;overflow-wrap:anywhere}'
    '.k table{border-collapse:collapse;width:100%}.k td,.k th{padding:1px 4px;text-align:right;'
    'font-variant-numeric:tabular-nums;white-space:nowrap}'
    '.k td:first-child,.k th:first-child{text-align:left;white-space:normal}.k i{color:#868e96}'
    '.k .mode{color:#fff;border-radius:4px;padding:1px 9px;font-weight:600}'
    f'.k .fault{{border-left:5px solid {colours.BAD};background:#fff0f0;color:{colours.BAD};'
    'padding:5px 9px;margin:5px 0}</style>'
)


def state_html(snapshot: Snapshot, controller: str, problem: str, is_live: bool = True) -> str:
    """Modes of controller and guard, faults with the next step, and diagnostics in words."""
    parts = []
    if snapshot.age > OLD and is_live:
        since = f'for {snapshot.age:.0f} s' if np.isfinite(snapshot.age) else 'so far'
        parts.append(
            _fault(f'No joint states {since}.', 'Check that the robot or its simulation is running.')
        )
    if problem:
        parts.append(_line(f'{problem[0].upper()}{problem[1:]}.'))
    if snapshot.controller is not None:
        report = snapshot.reports.get(controller)
        parts += _node('Controller', snapshot.controller, report, controller, is_live)
    if snapshot.guard is not None:
        guard = f'{controller.rpartition("/")[0]}/torque_guard'
        parts += _node('Guard', snapshot.guard, snapshot.reports.get(guard), guard, is_live)
    if not is_live:
        parts.insert(0, _line(f'Recording, {snapshot.time:.1f} s'))
    return _html(*parts)


def joints_html(robot: Robot, snapshot: Snapshot, limits: Array) -> str:
    """Position, velocity, command, limit and the used share of the limit of every joint."""
    rows = []
    for name, q, v, tau, limit in zip(
        robot.joint_names, snapshot.q, snapshot.v, snapshot.torque, limits, strict=True
    ):
        share = 100 * abs(tau) / limit if limit > 0 else np.nan
        colour = colours.BAD if share > 90 else colours.WARNING if share > 70 else ''
        style = f' style="color:{colour};font-weight:600"' if colour else ''
        cells = (_number(q, 3), _number(v, 3), _number(tau, 1), _number(limit if limit > 0 else np.nan, 0))
        unit = ' <i>m, m/s, N</i>' if robot.urdf.joints[name].type == 'prismatic' else ''
        rows.append(f'<td>{escape(name)}{unit}</td>{_cells(cells)}<td{style}>{_number(share, 0)}</td>')
    head = ('joint', 'q', 'v', 'command', 'limit', 'used')
    units = ('', 'rad', 'rad/s', 'N m', 'N m', '%')
    return _html(_table(head, rows, units))


def parameters_html(state: NodeState | None) -> str:
    """Payload, gravity and all parameters in force."""
    if state is None:
        return _html(_line('No controller yet.'))
    loads = [f'{load.get("mass"):g} kg at {load.get("frame")}' for load in state.payload if load.get('mass')]
    gravity = ', '.join(f'{x:.2f}' for x in state.gravity)
    rows = [
        f'<td>{escape(name)}</td><td style="white-space:normal">{escape(_value(value))}</td>'
        for name, value in sorted(state.parameters.items())
        if value not in (None, '', [], ())
    ]
    return _html(
        _line(f'Payload: {"; ".join(loads) or "none"}. Gravity: {gravity} m/s².'),
        _table(('parameter', 'value in force'), rows),
    )


def charts_html(snapshot: Snapshot) -> str:
    """How to use the charts, and why some are missing."""
    lines = ['The last 10 s. Drag to zoom, double-click to return.']
    if not np.isfinite(snapshot.torque).any():
        lines.append('Torque appears while the controller is enabled.')
    elif snapshot.controller is not None and snapshot.controller.mode == 'active':
        if not snapshot.terms:
            lines.append("Terms and tracking error need the controller's parameter publish_terms: true.")
        if snapshot.external is None:
            lines.append('External torque needs the term observer.')
    return text_html(*lines)


def legend_html(ends: Sequence[str]) -> str:
    """What the colours of the scene mean; `ends` are the links with a trail."""
    marks = [
        (colours.BAD, 'links turn red with torque, by the share of the limit'),
        ('#f0b414', 'centre of mass and its ground projection'),
        (colours.GRAVITY, 'weight'),
        (colours.REFERENCE, 'reference, where it differs from the robot; commanded force'),
        (colours.EXTERNAL, 'external force, from the observer'),
        *((colour, f'path of {end}') for colour, end in zip(colours.TRAILS, ends, strict=False)),
    ]
    lines = [f'<span style="color:{colour}">&#9632;</span> {escape(text)}' for colour, text in marks]
    return _html('<br>'.join(lines))


def text_html(*lines: str) -> str:
    """Plain text, line by line."""
    return _html(*map(_line, lines))


def _node(title: str, state: NodeState, report: Report | None, name: str, is_live: bool) -> list[str]:
    colour = MODE_COLOURS.get(state.mode, colours.IDLE)
    parts = [_line_of(f'{title} <span class="mode" style="background:{colour}">{escape(state.mode)}</span>')]
    if report is None and is_live:
        parts.append(
            _fault(f'{title}: no diagnostics any more.', 'Its process has ended or hangs: start it again.')
        )
    if state.fault is not None:
        step = NEXT_STEPS.get(state.fault.kind, 'Remove the cause.')
        parts.append(_fault(f'{title}: {state.fault}', f'{step} {WAYS_ON["fault"]}'))
    elif title == 'Controller' and report is not None and is_live:
        parts.append(_line(WAYS_ON.get(state.mode, '').format(node=name)))
    if report is not None:
        parts += [_line(text) for text in _in_words(report.values)]
        if report.level and state.fault is None:
            what = report.message.partition('; ')[2] or report.message  # without the mode
            parts.append(_line(f'{"Warning" if report.level == 1 else "Error"}: {what}'))
    return parts


def _in_words(values: Mapping[str, str]) -> Iterable[str]:
    if 'state rate [Hz]' in values:
        yield (
            f'{_whole(values, "state rate [Hz]")} states and {_whole(values, "command rate [Hz]")} commands '
            f'per second, {_whole(values, "step time mean [us]")} µs per step.'
        )
    if values.get('commands limited', '0') != '0':
        yield f'{values["commands limited"]} commands of the last second were limited.'
    if values.get('last refusal'):
        yield f'Last refusal: {values["last refusal"]}'


def _whole(values: Mapping[str, str], key: str) -> str:
    return values.get(key, '0').partition('.')[0]


def _fault(what: str, then: str) -> str:
    return f'<div class="fault"><b>{escape(what)}</b><br>{escape(then)}</div>'


def _line(text: str) -> str:
    return _line_of(escape(text))


def _line_of(html: str) -> str:
    return f'<div>{html}</div>'


def _table(head: Sequence[str], rows: Iterable[str], unit: Sequence[str] = ()) -> str:
    def header(cells: Sequence[str]) -> str:
        return '<tr>' + ''.join(f'<th>{escape(cell)}</th>' for cell in cells) + '</tr>'

    units = header(unit).replace('<th>', '<th style="font-weight:400;color:#868e96">') if unit else ''
    return f'<table>{header(head)}{units}{"".join(f"<tr>{row}</tr>" for row in rows)}</table>'


def _cells(cells: Iterable[str]) -> str:
    return ''.join(f'<td>{cell}</td>' for cell in cells)


def _number(x: float, digits: int) -> str:
    return f'{round(x, digits) + 0.0:.{digits}f}' if np.isfinite(x) else '–'  # noqa: RUF001


def _value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ', '.join(_value(entry) for entry in value)
    if isinstance(value, bool):
        return str(value).lower()
    return f'{value:g}' if isinstance(value, float) else str(value)


def _html(*parts: str) -> str:
    return f'{STYLE}<div class="k">{"".join(parts)}</div>'
