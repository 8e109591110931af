"""The frame loop: how frames are paced by a clock that the tests turn, and what ends it."""

import sys

import pytest

from dala import gpu
from dala.errors import ArgumentError, FreedError
from dala.gpu import compute
from dala.surfaces.frame_loop import Pace, run


class HandClock:
    """A clock that only goes on when it is told to; sleeping tells it."""

    def __init__(self, oversleeps_s=0.0):
        self.time_s = 1000.0
        self.oversleeps_s = oversleeps_s
        self.longest_sleep_s = 0.0

    def now_s(self):
        return self.time_s

    def sleep(self, duration_s):
        self.longest_sleep_s = max(self.longest_sleep_s, duration_s)
        self.time_s += duration_s + self.oversleeps_s


@pytest.fixture
def surface():
    with compute.device("cpu"):
        return gpu.create_surface(4, 2, kind="offscreen")


def times_of(surface, clock, fps, frames, costs_s):
    """When each frame begins if making it takes so long, and what became of the loop."""
    begun = []

    def fn(frame):
        begun.append(frame)
        clock.time_s += costs_s[frame.number] if frame.number < len(costs_s) else 0.0

    return begun, run(surface, fn, fps, frames, clock)


def test_frames_begin_at_multiples_of_the_period(surface):
    begun, stats = times_of(surface, HandClock(), 10, 4, [0.02, 0.09, 0.0, 0.05])
    assert [frame.time for frame in begun] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert [frame.dt for frame in begun] == pytest.approx([0.0, 0.1, 0.1, 0.1])
    assert [frame.number for frame in begun] == [0, 1, 2, 3]
    assert (stats.frames, stats.dropped, stats.ended) == (4, 0, "frames")


def test_a_clock_that_oversleeps_does_not_make_the_pace_drift(surface):
    begun, stats = times_of(surface, HandClock(oversleeps_s=0.003), 10, 101, [])
    assert begun[-1].time == pytest.approx(10.003)
    assert stats.dropped == 0


def test_a_frame_that_is_late_by_less_than_a_slot_begins_at_once_and_none_is_dropped(surface):
    begun, stats = times_of(surface, HandClock(), 10, 4, [0.15])
    assert [frame.time for frame in begun] == pytest.approx([0.0, 0.15, 0.2, 0.3])
    assert stats.dropped == 0


def test_slots_that_pass_while_a_frame_is_made_are_dropped(surface):
    begun, stats = times_of(surface, HandClock(), 10, 4, [0.35])
    # 0.1 and 0.2 have no frame, and 0.3 has its frame late.
    assert [frame.time for frame in begun] == pytest.approx([0.0, 0.35, 0.4, 0.5])
    assert [frame.dropped for frame in begun] == [0, 2, 2, 2]
    assert stats.dropped == 2


def test_frames_that_take_just_their_period_are_not_dropped(surface):
    _, stats = times_of(surface, HandClock(), 60, 600, [1 / 60] * 600)
    assert stats.dropped == 0
    assert stats.fps == pytest.approx(60)


def test_frames_that_take_twice_their_period_drop_every_other(surface):
    _, stats = times_of(surface, HandClock(), 50, 100, [1 / 25] * 100)
    assert stats.dropped == 99
    assert stats.fps == pytest.approx(25)


def test_without_a_pace_frames_follow_each_other_and_none_is_dropped(surface):
    begun, stats = times_of(surface, HandClock(), None, 3, [0.5, 2.0, 0.25])
    assert [frame.time for frame in begun] == pytest.approx([0.0, 0.5, 2.5])
    assert (stats.dropped, stats.seconds) == (0, pytest.approx(2.75))


def test_a_slow_pace_looks_at_the_window_in_between(surface):
    clock = HandClock()
    begun, _ = times_of(surface, clock, 0.5, 3, [])
    assert [frame.time for frame in begun] == pytest.approx([0.0, 2.0, 4.0])
    assert clock.longest_sleep_s < 0.05


def test_a_pace_asks_for_no_wait_when_it_is_a_rounding_error_early():
    pace = Pace(60, 0.0)
    pace.begin(0.0)
    assert pace.wait_s(1 / 60 - 1e-12) == 0.0
    pace.begin(1 / 60 - 1e-12)
    assert pace.dropped == 0


def test_the_loop_presents_what_the_function_drew_and_tells_how_it_went(device):
    surface = gpu.create_surface(4, 2, kind="offscreen")
    stats = gpu.loop(
        surface, lambda frame: surface.clear((frame.number / 10, 0, 0, 1)), fps=None, frames=10
    )
    assert surface.pixels()[0, 0].tolist() == [230, 0, 0, 255]
    assert (stats.frames, stats.dropped, stats.ended) == (10, 0, "frames")
    assert stats.fps == pytest.approx(10 / stats.seconds)


@pytest.mark.parametrize("kind", ["offscreen", "notebook"])
def test_a_frame_that_nothing_shows_is_made_before_it_is_counted(device, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "jupyter_rfb", None)
    surface = gpu.create_surface(4, 2, kind=kind)
    waits = []
    synchronize = surface._device.synchronize
    monkeypatch.setattr(surface._device, "synchronize", lambda: waits.append(synchronize()))
    gpu.loop(surface, lambda frame: None, fps=None, frames=3)
    assert len(waits) == 3


def test_the_loop_ends_when_the_function_returns_false_and_not_when_it_returns_none(surface):
    stats = gpu.loop(surface, lambda frame: None if frame.number < 3 else False, fps=1000)
    assert (stats.frames, stats.ended) == (3, "stopped")


def test_the_loop_ends_when_the_surface_is_destroyed_in_it(surface):
    stats = gpu.loop(surface, lambda frame: surface.destroy(), fps=1000)
    assert (stats.frames, stats.ended) == (0, "closed")


def test_an_interrupt_ends_the_loop_and_not_the_program(surface):
    def fn(frame):
        if frame.number == 2:
            raise KeyboardInterrupt

    stats = gpu.loop(surface, fn, fps=1000)
    assert (stats.frames, stats.ended) == (2, "interrupted")


def test_what_the_function_raises_is_raised(surface):
    with pytest.raises(ZeroDivisionError):
        gpu.loop(surface, lambda frame: 1 / frame.number, fps=None)


def test_a_loop_of_no_frames_calls_nothing(surface):
    stats = gpu.loop(surface, pytest.fail, frames=0)
    assert (stats.frames, stats.fps) == (0, 0.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"surface": "window"}, "not str"),
        ({"fn": 3}, "a function of a frame, not 3"),
        ({"fps": 0}, "a number above 0, or None for no pace, not 0"),
        ({"fps": float("nan")}, "not nan"),
        ({"fps": float("inf")}, "not inf"),
        ({"fps": "60"}, "not '60'"),
        ({"fps": True}, "not True"),
        ({"frames": 2.0}, "an integer, or None for no end, not 2.0"),
        ({"frames": -1}, "0 or more, not -1"),
    ],
)
def test_what_is_no_surface_function_pace_or_count_is_refused(surface, change, said):
    given = {"surface": surface, "fn": pytest.fail, "frames": 1, **change}
    with pytest.raises(ArgumentError, match="loop: ") as refused:
        gpu.loop(**given)
    assert said in str(refused.value)


def test_a_loop_over_a_destroyed_surface_is_refused(surface):
    surface.destroy()
    with pytest.raises(FreedError, match="was destroyed"):
        gpu.loop(surface, pytest.fail)
