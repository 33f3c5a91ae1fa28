"""A harness, a robot and a context per test file, in a domain of their own."""

import pytest
import rclpy
from nodes.fake_robot import FakeRobot
from nodes.harness import Harness, claim_domain
from rclpy.context import Context
from rclpy.signals import SignalHandlerOptions


@pytest.fixture(scope='module')
def harness():
    with Harness() as harness:
        yield harness


@pytest.fixture(scope='module')
def robot(harness):
    return FakeRobot(harness)


@pytest.fixture(scope='module')
def context():
    """For nodes in the test's own process."""
    domain, lock = claim_domain()
    context = Context()
    rclpy.init(context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    yield context
    context.try_shutdown()
    lock.close()
