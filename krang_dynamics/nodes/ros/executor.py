"""An executor with one prebuilt wait set, which takes messages directly from their handles."""

from collections.abc import Callable, Coroutine, Iterable
from contextlib import ExitStack
from inspect import iscoroutine
from time import monotonic
from typing import Any

from rclpy.context import Context
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.guard_condition import GuardCondition
from rclpy.impl.implementation_singleton import rclpy_implementation
from rclpy.node import Node
from rclpy.qos import HistoryPolicy
from rclpy.subscription import Subscription
from rclpy.utilities import timeout_sec_to_nsec
from rclpy.waitable import NumberOfEntities

from ...errors import UnknownNameError

KINDS = ('static', 'single', 'events')
ENDLESS = 100  # most messages per turn from a queue of unlimited depth
OTHERS = 0.005  # longest time without a look at services and events while messages arrive [s]
OTHERS_NS = round(1e9 * OTHERS)
POLLING = 0.001  # without a sleep; timers may be late by this [s]
STREAM = 0.1  # longest gap of messages between which an executor polls [s]

WARNING_PERIOD = 1.0  # between two warnings about invalid data [s]

_rclpy: Any = rclpy_implementation
INVALID_DATA = (RuntimeError, UnicodeDecodeError)  # what taking a message raises if its bytes are invalid
_SERVED = {  # kinds of a wait set, in the order in which they are served, and their names in a node
    'subscription': 'subscriptions',
    'client': 'clients',
    'service': 'services',
    'guard_condition': 'guards',
    'timer': 'timers',
}
_URGENT = ('subscription', 'guard_condition', 'timer')


def make_executor(kind: str, context: Context, logger: Any, busy_wait: bool = False) -> Executor:
    """The executor of that kind; with a warning, rclpy's single-threaded one if it does not work.

    With `busy_wait` a static one polls for messages while they arrive, instead of sleeping.
    """
    if kind not in KINDS:
        raise UnknownNameError('executor', kind, KINDS)
    try:
        if kind == 'static':
            return StaticExecutor(context, logger, busy_wait)
        if kind == 'events':
            return _events_executor(context, logger)
    except Exception as error:  # internals of rclpy can differ in any way
        logger.warning(_fallback(kind, error))
    return SingleThreadedExecutor(context=context)


def drain(node: Node) -> None:
    """Process all messages in a node's queues, including /clock, with any executor.

    For callbacks that block the executor but still need new messages.
    """
    for subscription in tuple(node.subscriptions):
        for _ in range(_depth(subscription)):
            try:
                taken = _take(subscription)
            except INVALID_DATA:
                continue
            if taken is None:
                break
            result = _call(subscription, taken)
            if iscoroutine(result) and node.executor is not None:
                node.executor.create_task(result)


class StaticExecutor(SingleThreadedExecutor):
    """Serves in each cycle all that is ready: messages first, in the order of their subscriptions.

    Timers come later, so that a watchdog runs after all messages that have arrived. A turn takes at most as
    many messages as a queue is deep, so that no topic starves the others. While messages arrive, most turns
    wait for messages and timers only: each entity of a wait set costs time. If the internals of rclpy differ
    from those expected, it falls back to rclpy's own implementation.
    """

    def __init__(self, context: Context, logger: Any, busy_wait: bool = False) -> None:
        self._logger = logger
        self._busy_wait = busy_wait
        self._message_at = -STREAM  # when one was served last [s]
        self._stale = False  # an entity was added or removed since the wait set was built
        self._idle: _Prebuilt | None = None  # None during a turn: a spin in a callback builds its own
        self._given_up = False
        self._had_messages = False  # in the last turn
        self._others_served_at = 0.0  # [s]
        self._warned_at = -WARNING_PERIOD  # about invalid data [s]
        super().__init__(context=context)
        _probe()
        whole = self._build().whole
        whole.fill()
        self._turn(whole, 0)

    def add_node(self, node: Node) -> bool:
        """Serve a node's callbacks."""
        added = super().add_node(node)
        if added:
            self.wake()
        return added

    def remove_node(self, node: Node) -> None:
        """Stop serving a node's callbacks."""
        super().remove_node(node)
        self.wake()

    def wake(self) -> None:
        """End the wait and rebuild the wait set; every change of a node calls this, in any thread."""
        self._stale = True
        self._idle = None
        super().wake()

    def shutdown(self, timeout_sec: float | None = None) -> bool:
        """Stop serving; a turn in another thread ends after its present callback."""
        done = super().shutdown(timeout_sec)
        self.wake()
        return done

    def wait_for_ready_callbacks(self, *args: Any, **kwargs: Any) -> Any:
        """rclpy's own wait, for spin_until_future_complete; it changes the indices of the events."""
        self._stale = True
        self._idle = None
        return super().wait_for_ready_callbacks(*args, **kwargs)

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait at most `timeout_sec`, without limit if it is None, and serve all that is ready."""
        if self._given_up:
            super().spin_once(timeout_sec)
            return
        if self._is_shutdown:
            return
        timeout = timeout_sec_to_nsec(timeout_sec)
        if self._tasks and self._run_tasks():
            timeout = 0  # a task made progress, and more callbacks may be ready
        prebuilt, self._idle = self._idle, None
        try:
            if prebuilt is None or self._stale or self._tasks:
                prebuilt = self._build()
            wait_set = self._chosen(prebuilt)
            wait_set.fill()
        except InvalidHandle:
            return  # another thread has just destroyed an entity: try again
        except Exception as error:  # rclpy's own implementation may still work
            self._give_up(error)
            return
        if self._busy_wait and timeout and monotonic() - self._message_at < STREAM:
            self._poll(prebuilt.urgent)
            timeout = 0
        elif wait_set is prebuilt.urgent:
            timeout = min(timeout, OTHERS_NS) if timeout >= 0 else OTHERS_NS
        self._turn(wait_set, timeout)
        if prebuilt.is_whole and not self._is_disturbed():
            self._idle = prebuilt

    def _poll(self, wait_set: '_WaitSet') -> None:
        """Serve messages as they arrive, without a sleep, for a while."""
        end = monotonic() + POLLING
        while monotonic() < end and not self._is_disturbed():
            for _, take, depth, subscription in wait_set.subscriptions:
                if self._serve_messages(subscription, take, depth):
                    self._had_messages, self._message_at = True, monotonic()

    def _chosen(self, prebuilt: '_Prebuilt') -> '_WaitSet':
        """All entities, or between messages the urgent ones."""
        now = monotonic()
        if self._had_messages and now - self._others_served_at < OTHERS:
            return prebuilt.urgent
        self._others_served_at = now
        return prebuilt.whole

    def _build(self) -> '_Prebuilt':
        self._stale = False  # before the entities are read, so that no change is missed
        return _Prebuilt(self._context, (self._guard, self._sigint_gc), self.get_nodes(), self.can_execute)

    def _give_up(self, error: Exception) -> None:
        if not (self._given_up or self._is_shutdown):
            self._given_up = self._stale = True
            self._logger.warning(_fallback('static', error))

    def _turn(self, wait_set: '_WaitSet', timeout: int) -> None:
        """Wait [ns], then serve."""
        wait_set.wait(timeout)
        if self._is_shutdown:
            return
        if not wait_set.context_is_ok():
            raise ExternalShutdownException
        messages = wait_set.ready('subscription')
        self._had_messages = bool(messages)
        if messages:
            self._message_at = monotonic()
            for pointer, take, depth, subscription in wait_set.subscriptions:
                if pointer in messages:
                    self._serve_messages(subscription, take, depth)
        for kind, entities in wait_set.others:
            pointers = wait_set.ready(kind)
            if pointers:
                take = self._take_due_timer if kind == 'timer' else getattr(self, f'_take_{kind}')
                for pointer, entity in entities:
                    if pointer in pointers:
                        self._serve(entity, entity.handle, take)
        for waitable in () if self._is_disturbed() else wait_set.waitables:
            if waitable.is_ready(wait_set.handle):
                self._serve(waitable, waitable, self._take_waitable)

    def _serve_messages(self, subscription: Any, take: Callable[[Any, bool], Any], depth: int) -> int:
        """Call the callback with each message of a queue; returns how many there were."""
        handle, message_type, raw = subscription.handle, subscription.msg_type, subscription.raw
        for count in range(depth):
            if self._is_over(handle) or (self._tasks and not self.can_execute(subscription)):
                return count
            try:
                taken = take(message_type, raw)
            except TypeError as error:  # another signature of rclpy: nothing was taken
                self._give_up(error)
                return count
            except INVALID_DATA as error:
                self._warn_of_invalid_data(subscription.topic_name, error)
                continue
            if taken is None:
                return count
            result = _call(subscription, taken)
            if result is not None and iscoroutine(result):
                self._start(subscription, result)
        return depth

    def _serve(self, entity: Any, handle: Any, take: Callable[[Any], Any]) -> None:
        """Take and call as rclpy does."""
        if self._is_over(handle):
            return
        if not self.can_execute(entity):
            if isinstance(entity, GuardCondition):
                entity.trigger()  # the wait has reset it
            return
        try:
            execute = take(entity)
        except InvalidHandle:
            return  # another thread has just destroyed it
        except INVALID_DATA as error:
            self._warn_of_invalid_data(getattr(entity, 'srv_name', type(entity).__name__), error)
            return
        if execute is not None:
            self._start(entity, execute())

    def _warn_of_invalid_data(self, name: str, error: Exception) -> None:
        """A message whose bytes are not of its type is dropped: no message may end the loop."""
        if monotonic() - self._warned_at >= WARNING_PERIOD:
            self._warned_at = monotonic()
            self._logger.warning(f'{name}: invalid data dropped: {error}')

    def _start(self, entity: Any, callback: Coroutine[Any, Any, Any]) -> None:
        """Run a callback; if it awaits something, it continues as a task of rclpy."""
        coroutine = _in_group(entity, callback)
        try:
            coroutine.send(None)
        except StopIteration:
            return
        self.create_task(coroutine)

    def _is_disturbed(self) -> bool:
        """Whether a callback of this turn has changed the node or spun the executor."""
        return self._stale or self._idle is not None

    def _is_over(self, handle: Any) -> bool:
        """Whether a callback of this cycle has destroyed the handle, or shut the executor down."""
        return self._is_disturbed() and (self._is_shutdown or not self._context.ok() or not _is_alive(handle))

    def _take_due_timer(self, timer: Any) -> Any:
        """A callback of this cycle may have cancelled or reset the timer."""
        take: Callable[[Any], Any] = self._take_timer
        return take(timer) if timer.handle.is_timer_ready() else None

    def _run_tasks(self) -> bool:
        """Continue every task; returns whether any of them ended."""
        ended = False
        for entry in tuple(self._tasks):
            task = entry[0]
            task()
            if task.done() or task.cancelled():
                ended = True
                with self._tasks_lock:
                    self._tasks.remove(entry)
                task.result()
        return ended


class _Prebuilt:
    """Wait sets of all and of the urgent entities. As long as it exists, their handles are not destroyed.

    An entity whose callback group is busy with a task is left out, because it would end every wait.
    """

    def __init__(
        self,
        context: Any,
        own_guards: Iterable[Any],
        nodes: Iterable[Node],
        can_execute: Callable[[Any], bool],
    ) -> None:
        self._in_use = ExitStack()
        self._in_use.enter_context(context.handle)
        guards = [guard for guard in own_guards if self._hold(guard.handle)]
        self.is_whole = True

        def take_in(entity: Any, handle: Any) -> bool:
            able = can_execute(entity)
            self.is_whole &= able
            return able and self._hold(handle)

        served = {
            kind: [
                entity for node in nodes for entity in getattr(node, plural) if take_in(entity, entity.handle)
            ]
            for kind, plural in _SERVED.items()
        }
        waitables = tuple(entity for node in nodes for entity in node.waitables if take_in(entity, entity))
        self.whole = _WaitSet(context, guards, served, waitables)
        self.urgent = _WaitSet(context, guards, {kind: served[kind] for kind in _URGENT}, ())

    def __del__(self) -> None:
        self._in_use.close()

    def _hold(self, handle: Any) -> bool:
        """Keep a handle in use; returns whether it is valid."""
        try:
            self._in_use.enter_context(handle)
        except InvalidHandle:
            return False
        return True


class _WaitSet:
    """Some entities, to be added anew before every wait."""

    def __init__(
        self, context: Any, guards: list[Any], served: dict[str, list[Any]], waitables: Iterable[Any]
    ) -> None:
        self.waitables = waitables
        self.handle = handle = _empty_wait_set(context, guards, served, waitables)
        self.wait = handle.wait
        self.ready = handle.get_ready_entities
        self.context_is_ok = context.handle.ok
        self._clear = handle.clear_entities
        self._entries = (  # function and argument that add each entity
            *((handle.add_guard_condition, guard.handle) for guard in guards),
            *(self._entry(waitable) for waitable in waitables),
            *(
                (getattr(handle, f'add_{kind}'), entity.handle)
                for kind, entities in served.items()
                for entity in entities
            ),
        )
        for subscription in served['subscription']:
            _wants_info(subscription)  # with another rclpy this raises here, not at the first message
        self.subscriptions = tuple(
            (entity.handle.pointer, entity.handle.take_message, _depth(entity), entity)
            for entity in served['subscription']
        )
        self.others = tuple(
            (kind, tuple((entity.handle.pointer, entity) for entity in entities))
            for kind, entities in served.items()
            if entities and kind != 'subscription'
        )

    def _entry(self, waitable: Any) -> tuple[Callable[[Any], Any], Any]:
        """How to add a waitable; an event by its handle, because it keeps the index that it gets here."""
        waitable.add_to_wait_set(self.handle)
        event = getattr(waitable, '_EventHandler__event', None)
        if event is None:
            return waitable.add_to_wait_set, self.handle
        return self.handle.add_event, event

    def fill(self) -> None:
        """Add all entities again, because a wait removes those that are not ready."""
        self._clear()
        for add, what in self._entries:
            add(what)


def _empty_wait_set(
    context: Any, guards: list[Any], served: dict[str, list[Any]], waitables: Iterable[Any]
) -> Any:
    """An empty wait set with space for all entities."""
    size = NumberOfEntities()
    for waitable in waitables:
        size = size + waitable.get_num_entities()
    count = {kind: len(served.get(kind, ())) for kind in _SERVED}
    return _rclpy.WaitSet(
        size.num_subscriptions + count['subscription'],
        size.num_guard_conditions + count['guard_condition'] + len(guards),
        size.num_timers + count['timer'],
        size.num_clients + count['client'],
        size.num_services + count['service'],
        size.num_events,
        context.handle,
    )


def _probe() -> None:
    """Raise AttributeError if rclpy lacks an internal that the first turn, without a node, does not use."""
    for owner, names in (
        (_rclpy.WaitSet, 'add_subscription add_timer add_client add_service add_event is_ready'),
        (_rclpy.Subscription, 'take_message pointer'),
        (_rclpy.Timer, 'is_timer_ready pointer'),
        (_rclpy.Client, 'pointer'),
        (_rclpy.Service, 'pointer'),
        (Subscription, 'CallbackType callback'),
        (Executor, '_take_client _take_service _take_guard_condition _take_timer _take_waitable'),
    ):
        for name in names.split():
            getattr(owner, name)


async def _in_group(entity: Any, callback: Coroutine[Any, Any, Any]) -> None:
    """Run a callback within its callback group."""
    group = entity.callback_group
    begun = group.beginning_execution(entity)
    try:
        await callback
    finally:
        if begun:
            group.ending_execution(entity)


def _is_alive(handle: Any) -> bool:
    try:
        with handle:
            return True
    except InvalidHandle:
        return False


def _depth(subscription: Any) -> int:
    profile = subscription.qos_profile
    return ENDLESS if profile.history == HistoryPolicy.KEEP_ALL else profile.depth or ENDLESS


def _take(subscription: Any) -> Any:
    """The next message of a queue and its info; None if there is none or the subscription is destroyed."""
    try:
        with subscription.handle:
            return subscription.handle.take_message(subscription.msg_type, subscription.raw)
    except InvalidHandle:
        return None


def _call(subscription: Any, taken: tuple[Any, Any]) -> Any:
    """Call the callback with a message, and with its info if the callback takes it."""
    if _wants_info(subscription):
        return subscription.callback(*taken)
    return subscription.callback(taken[0])


def _wants_info(subscription: Any) -> bool:
    return subscription._callback_type is Subscription.CallbackType.WithMessageInfo


def _events_executor(context: Context, logger: Any) -> Executor:
    from rclpy.experimental.events_executor import EventsExecutor

    executor = EventsExecutor(context=context)
    logger.warning(
        "executor 'events' is experimental in rclpy and hangs in some of its builds; "
        "if the node stops responding, set executor to 'static'"
    )
    return executor


def _fallback(kind: str, error: Exception) -> str:
    return (
        f"executor '{kind}' does not work with this rclpy ({type(error).__name__}: {error}); "
        "using rclpy's SingleThreadedExecutor instead, which is slower. "
        "Set executor to 'single' to silence this warning"
    )
