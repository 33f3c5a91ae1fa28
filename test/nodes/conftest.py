"""A bench, a robot and a context for each file that asks for them, in a domain of its own."""

import pytest
import rclpy
from nodes.bench import Bench, claim_domain
from nodes.fake_robot import FakeRobot
from rclpy.context import Context
from rclpy.signals import SignalHandlerOptions


@pytest.fixture(scope='module')
def bench():
    with Bench() as bench:
        yield bench


@pytest.fixture(scope='module')
def robot(bench):
    return FakeRobot(bench)


@pytest.fixture(scope='module')
def context():
    """For nodes in the test's own process."""
    domain, lock = claim_domain()
    context = Context()
    rclpy.init(context=context, domain_id=domain, signal_handler_options=SignalHandlerOptions.NO)
    yield context
    context.try_shutdown()
    lock.close()
