"""A rolling robot unlike Otbot: turned axes, a heading that counts clockwise, ground below the origin."""

import krang_dynamics as kd

INERTIA = '<inertia ixx="{0}" iyy="{1}" izz="{2}" ixy="0" ixz="0" iyz="0"/>'
WHEEL = (
    '<link name="{0}_rim"><inertial><mass value="1.5"/>'
    + INERTIA.format(0.01, 0.02, 0.01)
    + '</inertial></link>'
    '<joint name="{0}" type="continuous"><parent link="body"/><child link="{0}_rim"/>'
    '<origin xyz="-0.1 {1} 0"/><axis xyz="0 1 0"/><dynamics damping="0.05"/></joint>'
)
SLIDE = '<limit lower="-100" upper="100" effort="0" velocity="10"/>'
TEXT = (
    '<robot name="tractor"><link name="field"/><link name="rail"/><link name="plate"/><link name="cart"/>'
    '<joint name="north" type="prismatic"><parent link="field"/><child link="rail"/>'
    f'<origin xyz="0.3 -0.2 -0.05" rpy="0 0 0.7"/><axis xyz="0 -1 0"/>{SLIDE}</joint>'
    '<joint name="weld" type="fixed"><parent link="rail"/><child link="plate"/>'
    '<origin rpy="0 0 0.4"/></joint>'
    '<joint name="east" type="prismatic"><parent link="plate"/><child link="cart"/>'
    f'<axis xyz="1 0 0"/>{SLIDE}</joint>'
    '<joint name="bearing" type="continuous"><parent link="cart"/><child link="body"/>'
    '<axis xyz="0 0 -1"/></joint>'
    '<link name="body"><inertial><origin xyz="0.06 0.02 0.03"/><mass value="30"/>'
    + INERTIA.format(0.5, 0.8, 1.1)
    + '</inertial></link>'
    + WHEEL.format('left', 0.3)
    + WHEEL.format('right', -0.3)
    + '</robot>'
)
PLANAR = ('north', 'east', 'bearing')


def tractor(text=TEXT, **overrides):
    """The robot; both wheels are driven through rotors, and of equal radius 0.15 m."""
    planar = {name: {'driven': False, 'state': 'odom'} for name in PLANAR}
    wheel = {'driven': True, 'motor': {'gear': 10.0, 'rotor_inertia': 1e-4}}
    wheels = [{'link': f'{side}_rim', 'radius': 0.15, 'axle': [0.0, 1.0, 0.0]} for side in ('left', 'right')]
    data = {
        'joints': {'left': wheel, **planar, 'right': wheel},
        'actuators': [{'name': side, 'joint': side} for side in ('left', 'right')],
        'rolling': wheels,
        'odom': {'x': 'east', 'y': 'north', 'heading': 'bearing', 'heading_of': 'body'},
    }
    return kd.load_robot(text, **{**data, **overrides})
