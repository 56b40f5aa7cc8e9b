"""Programs of threads run unchanged in a simulation: locks, queues, pools, timers; explored, killed, repeatable."""

from __future__ import annotations

import concurrent.futures
import http.client
import queue
import re
import socket
import sys
import threading
import time
import types
import urllib.request
from typing import Any

import pytest
import trio

import simkit
from simkit import RandomWalk, Tape, World, threaded
from simkit.errors import SimkitError


def simulate(main: Any, seed: int = 0, **options: Any) -> Any:
    tape = Tape.from_seed(seed)
    return simkit.run(main, tape=tape, strategy=RandomWalk(tape.stream("schedule")), **options)


def in_process(program: Any, *args: Any, seed: int = 0, **options: Any) -> Any:
    async def main(world: World) -> Any:
        status = await world.host("desk").start(threaded.run, program, *args).wait()
        if status.error is not None:
            raise status.error
        return status.value

    return simulate(main, seed, **options)


def pipeline() -> Any:
    """A producer thread, a queue, a pool, a timer: most of what such programs are made of."""
    work: queue.Queue[int | None] = queue.Queue(maxsize=2)

    def produce() -> None:
        for number in range(5):
            time.sleep(1)
            work.put(number)
        work.put(None)

    producer = threading.Thread(target=produce)
    producer.start()
    numbers = list(iter(work.get, None))
    producer.join()
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        squares = list(pool.map(lambda number: number * number, numbers))
    rung = threading.Event()
    threading.Timer(60, rung.set).start()
    assert rung.wait(timeout=120)
    return squares, producer.name


def test_a_pipeline_runs_in_virtual_time() -> None:
    """It takes over a minute, none of it real; equal seeds give equal traces, on both kernels."""
    for seed in range(5):
        outcome = in_process(pipeline, seed=seed)
        assert outcome.unwrap() == ([0, 1, 4, 9, 16], "Thread-1 (produce)")
        assert 65 * 10**9 <= outcome.now_ns < 90 * 10**9
        assert in_process(pipeline, seed=seed).digest == outcome.digest
        assert in_process(pipeline, seed=seed, kernel="fallback").digest == outcome.digest


def lost_update() -> int:
    value = 0
    lock = threading.Lock()

    def add() -> None:
        nonlocal value
        with lock:
            seen = value
        with lock:
            value = seen + 1

    threads = [threading.Thread(target=add) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return value


def test_who_takes_a_lock_may_lose_its_turn() -> None:
    """A check and an update under two acquisitions: some seeds lose the update, some do not."""
    assert {in_process(lost_update, seed=seed).unwrap() for seed in range(40)} == {1, 2}


def test_a_turn_is_lost_between_two_instructions() -> None:
    """`n += 1` is no single step: without any lock some seeds lose an update, and the same do again."""

    def counter() -> int:
        n = 0

        def add() -> None:
            nonlocal n
            for _ in range(3):
                n += 1

        threads = [threading.Thread(target=add) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return n

    found = {seed: in_process(counter, seed=seed).unwrap() for seed in range(100)}
    assert 6 in found.values()
    assert min(found.values()) < 6
    lost = [seed for seed, n in found.items() if n < 6]
    assert [in_process(counter, seed=seed).unwrap() for seed in lost] == [found[seed] for seed in lost]


def crossed_locks() -> None:
    first, second = threading.Lock(), threading.Lock()

    def one() -> None:
        with first, second:
            pass

    def other() -> None:
        with second, first:
            pass

    threads = [threading.Thread(target=target) for target in (one, other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_locks_taken_crosswise_are_a_deadlock() -> None:
    """Found, and told as one: nothing can go on any more."""
    errors = [in_process(crossed_locks, seed=seed).error for seed in range(60)]
    assert {type(error).__name__ for error in errors} == {"DeadlockError", "NoneType"}
    told = next(str(error) for error in errors if error is not None)
    assert "MainThread of desk/main#101 at" in told
    assert re.search(r"Thread-1 \(one\) of desk/main#101 at .*test_threaded.py:\d+ in crossed_locks.<locals>.one", told)


def test_locks_behave_as_those_of_threading() -> None:
    """Timeouts, non-blocking calls, re-entry, misuse."""

    def program() -> list[Any]:
        lock, again = threading.Lock(), threading.RLock()
        seen: list[Any] = [lock.acquire(), lock.acquire(blocking=False)]
        began = time.monotonic()
        seen += [lock.acquire(timeout=5), round(time.monotonic() - began)]
        lock.release()
        for misuse in (lock.release, again.release):
            with pytest.raises(RuntimeError):
                misuse()
        with again, again:
            taken: list[bool] = []
            thread = threading.Thread(target=lambda: taken.append(again.acquire(timeout=1)))
            thread.start()
            thread.join()
            seen += taken
        with pytest.raises(ValueError, match="non-blocking"):
            lock.acquire(False, 1)
        return seen

    assert in_process(program).unwrap() == [True, False, False, 5, False]


def test_a_semaphore_a_barrier_and_a_condition() -> None:
    """All that is built on locks works on ours."""

    def program() -> tuple[int, list[int]]:
        slots, most, inside = threading.Semaphore(2), 0, 0
        barrier = threading.Barrier(4)
        order: list[int] = []
        condition, counting = threading.Condition(), threading.Lock()

        def work(number: int) -> None:
            nonlocal most, inside
            barrier.wait()
            with slots:
                with counting:
                    inside += 1
                    most = max(most, inside)
                time.sleep(1)
                with counting:
                    inside -= 1
            with condition:
                condition.wait_for(lambda: len(order) == number)
                order.append(number)
                condition.notify_all()

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return most, order

    for seed in range(5):
        assert in_process(program, seed=seed).unwrap() == (2, [0, 1, 2, 3])


def test_threads_that_are_no_daemons_are_waited_for() -> None:
    """As at the end of a real program; daemons are not."""
    log: list[str] = []

    def program() -> str:
        def later(seconds: int, word: str) -> None:
            time.sleep(seconds)
            log.append(word)

        threading.Thread(target=later, args=(5, "thread")).start()
        threading.Thread(target=later, args=(50, "daemon"), daemon=True).start()
        return "done"

    outcome = in_process(program)
    assert outcome.unwrap() == "done"
    assert log == ["thread"]
    assert outcome.now_ns < 6 * 10**9


def test_what_a_thread_raises_is_told_and_ends_only_the_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """By threading's own hook."""

    def program() -> str:
        def broken() -> None:
            raise LookupError("broken")

        thread = threading.Thread(target=broken)
        thread.start()
        thread.join()
        return "alive"

    with ThreadingsOwnHook():
        assert in_process(program).unwrap() == "alive"
    assert "LookupError: broken" in capsys.readouterr().err


class ThreadingsOwnHook:
    """pytest turns errors in threads into warnings of its own; here threading's hook is what counts."""

    def __enter__(self) -> None:
        self._hook, threading.excepthook = threading.excepthook, threading.__excepthook__

    def __exit__(self, *_: object) -> None:
        threading.excepthook = self._hook


def test_a_killed_process_stops_its_threads() -> None:
    """None of them goes on while the world lasts."""
    log: list[float] = []

    def program() -> None:
        def tick() -> None:
            while True:
                time.sleep(1)
                log.append(time.monotonic())

        threading.Thread(target=tick).start()
        tick()

    async def main(world: World) -> int:
        process = world.host("desk").start(threaded.run, program)
        await trio.sleep(10.5)
        process.kill()
        before = len(log)
        await trio.sleep(100)
        return len(log) - before

    assert simulate(main).unwrap() == 0
    assert len(log) == 20


def test_thread_locals_and_names_start_anew_in_each_run() -> None:
    """What one run leaves in a `threading.local`, the next does not find; names count from one."""
    local = threading.local()

    def program() -> tuple[str, list[str]]:
        found: list[str] = []

        def look() -> None:
            found.append(getattr(local, "mark", "clean"))
            local.mark = "dirty"

        threads = [threading.Thread(target=look) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return threads[-1].name, found

    for _ in range(2):
        assert in_process(program).unwrap() == ("Thread-3 (look)", ["clean"] * 3)


def waiting_for_pools() -> Any:
    """Sets of futures, names of pools, and a thread that looks around when the main thread has just begun."""
    gate = threading.Condition()
    told: list[Any] = [[thread.name for thread in threading.enumerate()]]

    def work(number: int) -> int:
        time.sleep(number % 7)
        with gate:
            gate.wait(timeout=0.3)
        return number

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        told += [
            future.result() for future in concurrent.futures.as_completed([pool.submit(work, n) for n in range(12)])
        ]
        done, late = concurrent.futures.wait([pool.submit(work, n) for n in range(20)], timeout=8)
        told += [len(late), [future.result() for future in done]]
        told += [thread.name for thread in threading.enumerate()]
    return told


def test_sets_of_futures_and_names_are_the_same_in_every_run() -> None:
    """`wait` and `as_completed` walk sets of futures and sort them by address; pools are numbered per interpreter."""

    async def main(world: World) -> Any:
        return [await one.wait() for one in [world.host(name).start(threaded.run, waiting_for_pools) for name in "ab"]]

    def run_once(ballast: int) -> Any:
        _ballast = [object() for _ in range(ballast)]
        outcome = simulate(main, seed=2)
        return outcome.digest, outcome.unwrap()

    first = run_once(10)
    assert [run_once(ballast) for ballast in (1000, 1, 333)] == [first] * 3
    named = threading._newname  # type: ignore[attr-defined]
    assert named("Dummy-%d").startswith("Dummy-"), "the real one is in its place"
    names = {name for one in first[1] for name in one.value if isinstance(name, str)}
    assert "MainThread" in names
    assert all(name == "MainThread" or name.startswith("ThreadPoolExecutor-") for name in names)


def test_the_end_of_the_world_is_told_by_no_thread(capsys: pytest.CaptureFixture[str]) -> None:
    """A thread that is unwound at the end gives back a condition that it does not hold; nobody wants to know."""

    def program() -> None:
        condition = threading.Condition()

        def wait() -> None:
            with condition:
                condition.wait()

        threading.Thread(target=wait, daemon=True).start()
        time.sleep(1)

    with ThreadingsOwnHook():
        in_process(program).unwrap()
    assert capsys.readouterr().err == ""


def test_a_module_that_is_imported_by_the_first_run_of_all_makes_no_difference() -> None:
    """Nor does a lock that a module was given in a run: it is to each process its own in the next."""
    module = types.ModuleType("late_module")

    def program() -> None:
        if not hasattr(module, "lock"):
            module.lock = threading.Lock()  # type: ignore[attr-defined]
        module.lock.acquire()

    sys.modules["late_module"] = module
    try:
        assert in_process(program).unwrap() is None
        assert in_process(program).unwrap() is None
    finally:
        del sys.modules["late_module"]


def test_a_thread_that_its_process_did_not_live_to_see_is_forgotten() -> None:
    """Killed as it starts one: no later run, nor the real world, has that thread in its list."""
    before = threading.enumerate()

    def program() -> list[str]:
        names = [thread.name for thread in threading.enumerate()]
        for _ in range(5):
            threading.Thread(target=time.sleep, args=(1,)).start()
        return names

    async def main(world: World) -> Any:
        for number in range(40):
            dying = world.host("desk").start(threaded.run, program)
            await world.sleep_ns(number * 50_000)
            dying.kill()

    simulate(main).unwrap()
    assert threading.enumerate() == before
    names = in_process(program).unwrap()
    assert in_process(program).unwrap() == names
    assert "MainThread" in names
    assert not [name for name in names if "sleep" in name]


def test_outside_a_simulation_everything_is_real() -> None:
    """Locks made before, during and after a simulation are ordinary ones for real threads."""
    kept: list[Any] = []

    def program() -> None:
        kept.append(threading.Lock())
        with kept[0]:
            pass

    in_process(program).unwrap()
    assert type(threading.Lock()) is type(threading._allocate_lock())  # type: ignore[attr-defined]
    done: list[bool] = []

    def real() -> None:
        with kept[0]:
            done.append(True)

    thread = threading.Thread(target=real)
    thread.start()
    thread.join(10)
    assert done == [True]
    with pytest.raises(SimkitError, match="threaded-outside"):
        trio.run(threaded.run, pipeline)


def test_trio_functions_can_be_called() -> None:
    """What the world offers in trio, a thread can wait for."""

    def program() -> str:
        threaded.in_trio(trio.sleep, 3)
        return "slept"

    outcome = in_process(program)
    assert outcome.unwrap() == "slept"
    assert 3 * 10**9 <= outcome.now_ns < 4 * 10**9


def serve_lines() -> None:
    """A server of the old school: a thread for each connection, blocking calls, files over sockets."""

    def answer(connection: socket.socket) -> None:
        with connection, connection.makefile("rw", encoding="utf-8", newline="\n") as file:
            for line in file:
                file.write(line.upper())
                file.flush()

    with socket.create_server(("", 7)) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=answer, args=(connection,), daemon=True).start()


def ask_lines(words: list[str]) -> list[str]:
    with socket.create_connection(("server", 7)) as connection, connection.makefile("rwb") as file:
        answers = []
        for word in words:
            file.write(f"{word}\n".encode())
            file.flush()
            answers.append(file.readline().decode().strip())
        return answers


def test_blocking_sockets_go_over_the_simulated_network() -> None:
    """Server and client of plain sockets and threads on two hosts; equal seeds give equal traces."""

    async def main(world: World) -> Any:
        world.host("server").start(threaded.run, serve_lines)
        await trio.sleep(1)
        clients = [world.host(name).start(threaded.run, ask_lines, [name, "two"]) for name in ("ann", "bob")]
        return [(await client.wait()).value for client in clients]

    for seed in range(5):
        outcome = simulate(main, seed)
        assert outcome.unwrap() == [["ANN", "TWO"], ["BOB", "TWO"]]
        assert simulate(main, seed).digest == outcome.digest


def test_sockets_have_timeouts_and_break() -> None:
    """A server that never answers is a timeout, one that was killed a reset, none at all a refusal."""

    async def silent(stream: trio.SocketStream) -> None:
        await stream.receive_some(100)
        await trio.sleep_forever()

    def program() -> list[str]:
        seen = []
        with socket.create_connection(("server", 7), timeout=5) as connection:
            connection.sendall(b"hello")
            for _ in range(2):
                try:
                    seen.append(repr(connection.recv(10)))
                except OSError as error:
                    seen.append(type(error).__name__)
                connection.settimeout(None)
        try:
            socket.create_connection(("server", 7))
        except ConnectionRefusedError as error:
            seen.append(type(error).__name__)
        return seen

    async def main(world: World) -> Any:
        server = world.host("server").start(trio.serve_tcp, silent, 7)
        await trio.sleep(1)
        client = world.host("client").start(threaded.run, program)
        await trio.sleep(20)
        server.kill()
        return (await client.wait()).value

    assert simulate(main).unwrap() == ["TimeoutError", "ConnectionResetError", "ConnectionRefusedError"]


def test_the_standard_librarys_http_client_asks_a_trio_server() -> None:
    """`http.client` and `urllib` unchanged."""

    async def page(stream: trio.SocketStream) -> None:
        await stream.receive_some(4096)
        await stream.send_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")

    def program() -> list[bytes]:
        connection = http.client.HTTPConnection("server")
        connection.request("GET", "/")
        first = connection.getresponse().read()
        connection.close()
        with urllib.request.urlopen("http://server/") as answer:
            return [first, answer.read()]

    async def main(world: World) -> Any:
        world.host("server").start(trio.serve_tcp, page, 80)
        await trio.sleep(1)
        status = await world.host("client").start(threaded.run, program).wait()
        if status.error is not None:
            raise status.error
        return status.value

    assert simulate(main).unwrap() == [b"hello", b"hello"]
