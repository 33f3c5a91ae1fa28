"""What a controller does where nobody says."""

from ..robot.model import Robot


def usual_terms(robot: Robot) -> str:
    """Terms that suit a robot, with commas."""
    if robot.config.rolling:
        return 'rolling_base'
    is_driven = all(joint.driven for joint in robot.config.joints.values())
    return 'gravity,friction,computed_torque' if is_driven else 'balance'
