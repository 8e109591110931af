"""Things known from frame to frame: moving, crossing, hidden, lost, and coming in."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from dala import errors
from dala.ml.results.assignment import assigned, overlaps
from dala.ml.results.motion import Motion
from dala.ml.results.results import Classification, Detection, Keypoint, Pose
from dala.ml.results.tracking import Tracker


def thing(x, y, score=0.9, size=20.0):
    return Detection((x, y, x + size, y + 2 * size), "person", score)


def numbers(found):
    return [item.track for item in found]


def test_things_keep_their_numbers_while_they_move():
    tracker = Tracker()
    for step in range(20):
        found = tracker.update([thing(4.0 * step, 10.0), thing(200 - 3.0 * step, 100.0)])
        assert numbers(found) == [1, 2]


def test_things_that_cross_keep_their_numbers():
    tracker = Tracker()
    for step in range(30):
        left, right = thing(6.0 * step, 50.0), thing(180 - 6.0 * step, 58.0)
        # The order of what a detector gives says nothing.
        found = tracker.update([left, right] if step % 2 else [right, left])
        assert {item.box[1]: item.track for item in found} == {50.0: 2, 58.0: 1}


def test_a_hidden_thing_is_found_again_where_it_was_bound_for():
    tracker = Tracker()
    seen = []
    for step in range(30):
        is_hidden = 12 <= step < 20
        seen.append(numbers(tracker.update([] if is_hidden else [thing(3.0 * step, 40.0)])))
    assert seen == [[1]] * 12 + [[]] * 8 + [[1]] * 10


def test_who_is_gone_for_longer_than_the_buffer_comes_back_as_another():
    tracker = Tracker(buffer=5)
    for _ in range(4):
        tracker.update([thing(50.0, 50.0)])
    for _ in range(7):
        assert tracker.update([]) == []
    tracker.update([thing(50.0, 50.0)])
    assert numbers(tracker.update([thing(50.0, 50.0)])) == [2]


def test_an_unsure_box_goes_on_with_a_thing_and_begins_none():
    tracker = Tracker(0.5)
    tracker.update([thing(10.0, 10.0)])
    found = tracker.update([thing(12.0, 10.0, 0.2), thing(150.0, 10.0, 0.2)])
    assert [(item.track, item.score) for item in found] == [(1, 0.2)]
    assert tracker.update([thing(14.0, 10.0, 0.05)]) == []


def test_something_new_gets_a_number_when_it_is_seen_again():
    tracker = Tracker()
    tracker.update([thing(10.0, 10.0)])
    both = [thing(10.0, 10.0), thing(150.0, 10.0)]
    assert numbers(tracker.update(both)) == [1]
    assert numbers(tracker.update(both)) == [1, 2]
    tracker.update([thing(10.0, 10.0), thing(300.0, 10.0)])  # seen once only
    assert numbers(tracker.update(both[:1])) == [1]


def test_poses_are_tracked_by_their_boxes_or_points():
    tracker = Tracker()
    for step in range(3):
        points = {
            "nose": Keypoint(10.0 + step, 10.0, 0.9),
            "left_hip": Keypoint(30.0 + step, 60.0, 0.9),
            "left_ankle": Keypoint(500.0, 0.0, 0.1),
        }
        boxed = Pose(points, 0.8, (200.0 + step, 10.0, 240.0 + step, 90.0))
        assert numbers(tracker.update([Pose(points, 0.9), boxed])) == [1, 2]


def test_what_has_no_place_is_refused():
    with pytest.raises(errors.ArgumentError, match=r"has a place.*Classification"):
        Tracker().update([Classification(1, "cat", 0.9)])
    with pytest.raises(errors.ArgumentError, match="from 0 to 1"):
        Tracker(2.0)


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (5, 3), (1, 1)])
def test_the_assignment_is_the_cheapest_there_is(shape):
    random = np.random.default_rng(7)
    for _ in range(20):
        costs = random.random(shape)
        turned = costs if shape[0] <= shape[1] else costs.T
        rows, columns = turned.shape
        best = min(turned[range(rows), order].sum() for order in permutations(range(columns), rows))
        pairs = assigned(costs, 1.0)
        assert sum(costs[pair] for pair in pairs) == pytest.approx(best)
        assert len(pairs) == rows


def test_pairs_that_cost_too_much_are_left_out():
    costs = np.array([[0.9, 0.2], [0.1, 0.95]])
    assert assigned(costs, 0.5) == [(0, 1), (1, 0)]
    assert assigned(np.array([[0.1, 0.2], [0.9, 0.9]]), 0.5) == [(0, 0)]
    assert assigned(np.zeros((0, 3)), 1) == []


def test_boxes_overlap_by_what_they_share():
    one = np.array([[0, 0, 2, 2], [5, 5, 5, 9]], float)
    assert overlaps(one, np.array([[1, 0, 3, 2]], float)).tolist() == [[pytest.approx(1 / 3)], [0]]


def test_motion_is_learnt_from_where_a_box_was():
    motion = Motion((0.0, 0.0, 20.0, 40.0))
    for step in range(1, 12):
        motion.advance()
        motion.correct((5.0 * step, 0.0, 20.0 + 5.0 * step, 40.0))
    motion.advance()
    assert motion.box == pytest.approx([60, 0, 80, 40], abs=1.5)
