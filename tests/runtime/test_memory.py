"""Host memory: aligned, zeroed, counted, reused, and alive for as long as somebody looks at it."""

import copy
import gc
import os
import signal
import threading
import weakref

import numpy as np
import pytest

from dala.base.size_classes import size_class
from dala.devices.cpu import memory
from dala.devices.cpu.memory import SMALL_BYTES, Borrowed, Pool
from dala.errors import LimitError, MemoryLimitError

U8 = np.dtype(np.uint8)
MEGABYTE = 1 << 20
SIZES = [0, 1, 12, 4096, SMALL_BYTES, SMALL_BYTES + 1, 3 * MEGABYTE]


@pytest.fixture
def pool():
    return Pool()


def view(block):
    return block.as_array(U8, (block.size_bytes,))


@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_block_is_aligned_zeroed_and_writable(pool, size_bytes):
    block = pool.allocate(size_bytes)
    assert block.size_bytes == size_bytes
    assert block.address > 0
    assert block.address % 64 == 0
    assert not view(block).any()
    view(block)[...] = 7
    assert (view(block) == 7).all()


def test_a_view_has_the_asked_dtype_and_shape_and_shares_the_bytes(pool):
    block = pool.allocate(24)
    floats = block.as_array(np.dtype(np.float32), (2, 3))
    floats[1, 2] = 1.0
    assert floats.shape == (2, 3)
    assert view(block)[20:].tobytes() == np.float32(1.0).tobytes()


@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_view_keeps_the_block_alive_and_its_death_ends_it(pool, size_bytes):
    block = pool.allocate(size_bytes)
    alive = weakref.ref(block)
    array = view(block)[::2]
    del block
    gc.collect()
    assert alive() is not None
    assert pool.held().live_blocks == 1
    del array
    assert alive() is None
    assert (pool.held().live_blocks, pool.held().live_bytes) == (0, 0)


@pytest.mark.parametrize("size_bytes", SIZES)
def test_a_block_that_was_written_and_given_back_reads_zeros_when_handed_out_again(
    pool, size_bytes
):
    for _ in range(3):
        block = pool.allocate(size_bytes)
        assert not view(block).any()
        view(block)[...] = 255
        del block


def test_a_large_block_is_used_again_for_a_slightly_different_size(pool):
    block = pool.allocate(MEGABYTE)
    address = block.address
    del block
    assert pool.held().pooled_bytes >= MEGABYTE
    again = pool.allocate(MEGABYTE - 1000)
    assert again.address == address
    assert pool.held().pooled_bytes == 0


def test_a_block_that_will_be_overwritten_is_not_zeroed(pool):
    block = pool.allocate(MEGABYTE)
    view(block)[...] = 9
    del block
    assert (view(pool.allocate(MEGABYTE, zeroed=False)) == 9).all()


def test_a_request_for_nothing_takes_the_smallest_block():
    assert size_class(0, 256) == size_class(1, 256) == 256


def test_size_classes_waste_an_eighth_at_most():
    for size_bytes in range(SMALL_BYTES + 1, 40 * MEGABYTE, 99_991):
        assert (
            size_bytes <= size_class(size_bytes, os.sysconf("SC_PAGE_SIZE")) <= size_bytes * 9 / 8
        )
        assert size_class(size_bytes, os.sysconf("SC_PAGE_SIZE")) % os.sysconf("SC_PAGE_SIZE") == 0


def test_the_pool_keeps_no_more_than_its_limit_and_forgets_the_oldest_size_first():
    pool = Pool(limit_bytes=8 * MEGABYTE)
    blocks = [pool.allocate(2 * MEGABYTE) for _ in range(3)] + [pool.allocate(4 * MEGABYTE)]
    last = blocks[-1].address
    while blocks:
        blocks.pop(0)
    assert pool.held().pooled_bytes == 8 * MEGABYTE
    assert pool.allocate(4 * MEGABYTE).address == last


def test_a_block_beyond_the_limit_is_not_kept():
    pool = Pool(limit_bytes=MEGABYTE)
    kept = pool.allocate(MEGABYTE)
    del kept
    pool.allocate(2 * MEGABYTE)
    assert pool.held().pooled_bytes == MEGABYTE


def test_trim_gives_everything_back_and_says_how_much(pool):
    blocks = [pool.allocate(MEGABYTE) for _ in range(3)]
    blocks.clear()
    assert pool.trim() == 3 * MEGABYTE
    assert pool.held().pooled_bytes == 0
    assert pool.trim() == 0
    assert not view(pool.allocate(MEGABYTE)).any()


def test_more_than_the_machine_has_is_refused_with_both_numbers():
    pool = Pool(capacity_bytes=10 * MEGABYTE)
    held = pool.allocate(4 * MEGABYTE)
    with pytest.raises(LimitError, match=r"7,340,032 bytes were asked for.* 6,291,456 are avail"):
        pool.allocate(7 * MEGABYTE)
    assert pool.held().live_bytes == held.size_bytes
    del held
    pool.allocate(7 * MEGABYTE)


def test_a_system_that_refuses_gives_an_error_and_leaves_the_counts_right(monkeypatch, pool):
    def refuse(size_bytes):
        raise OSError(12, "Cannot allocate memory")

    monkeypatch.setattr(memory, "_map_pages", refuse)
    with pytest.raises(MemoryLimitError, match=r"1,048,576 bytes"):
        pool.allocate(MEGABYTE)
    assert pool.held().live_blocks == 0
    monkeypatch.undo()
    assert not view(pool.allocate(MEGABYTE)).any()


def test_what_is_kept_is_given_up_before_a_request_fails(monkeypatch, pool):
    pool.allocate(MEGABYTE)
    real, refusals = memory._map_pages, [OSError(12, "Cannot allocate memory")]

    def refuse_once(size_bytes):
        if refusals:
            raise refusals.pop()
        return real(size_bytes)

    monkeypatch.setattr(memory, "_map_pages", refuse_once)
    assert pool.allocate(2 * MEGABYTE).size_bytes == 2 * MEGABYTE
    assert pool.held().pooled_bytes == 2 * MEGABYTE  # the first one is gone


def test_borrowed_memory_keeps_its_owner_and_enters_no_pool():
    owner = np.arange(8, dtype=np.uint8)
    alive = weakref.ref(owner)
    borrowed = Borrowed(owner.ctypes.data, owner.nbytes, owner)
    array = view(borrowed)
    del owner, borrowed
    gc.collect()
    assert array.tolist() == list(range(8))
    del array
    assert alive() is None


def test_memory_cannot_be_copied(pool):
    with pytest.raises(TypeError, match="copy its buffer"):
        copy.deepcopy(pool.allocate(8))


@pytest.mark.parametrize("size_bytes", [100, MEGABYTE])
def test_many_threads_leave_the_counts_at_zero(pool, size_bytes):
    wrong = []

    def work(seed):
        for turn in range(200):
            block = pool.allocate(size_bytes)
            array = view(block)
            del block
            if array[:100].any():
                wrong.append((seed, turn))
            array[:100] = seed

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert (pool.held().live_blocks, pool.held().live_bytes) == (0, 0)


def test_a_finaliser_may_allocate_and_free_inside_the_collector(pool):
    class Node:
        def __init__(self):
            self.itself = self
            self.block = pool.allocate(MEGABYTE)

        def __del__(self):
            pool.allocate(2 * MEGABYTE)

    with pool._lock:  # as if the collector had started in the midst of a method
        for _ in range(20):
            Node()
        gc.collect()
    assert pool.held().live_blocks == 0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_allocates_and_does_not_write_into_its_parent():
    shared = memory.HOST.allocate(MEGABYTE)
    taken, release = threading.Event(), threading.Event()

    def hold_the_lock():
        with memory.HOST._lock:
            taken.set()
            release.wait(0.2)

    holder = threading.Thread(target=hold_the_lock)
    holder.start()
    taken.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(10)  # a child that finds the lock taken would wait for ever
        view(shared)[...] = 1
        block = memory.HOST.allocate(2 * MEGABYTE)
        os._exit(int(view(block).any()))
    release.set()
    holder.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert not view(shared).any()
    assert memory.HOST.allocate(3 * MEGABYTE).size_bytes == 3 * MEGABYTE
