"""What is wrong with a transferred motion is seen on its result, whatever the solver says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import pdist

import pliant
from pliant import Animation, Mesh, gallery
from pliant.core import rotations
from pliant.engines.transfer import build_cage
from pliant.engines.transfer.extremities import extremities
from pliant.engines.transfer.judgement import edge_stretch, judge, new_crossings
from pliant.gallery.primitives import box_mesh
from pliant.geometry.body_plan.recognition import articulation


@pytest.fixture(scope="module")
def walked() -> pliant.Transfer:
    target = gallery.creature(900).base
    walk = gallery.creature_walk(6)
    return pliant.transfer(walk, target, build_cage(target, faces=160), "auto", lattice=16)


def names(moved: pliant.Transfer) -> list[str]:
    return [sentence.partition(":")[0] for sentence in moved.judgement.problems]


def with_points(moved: pliant.Transfer, points: np.ndarray) -> pliant.Transfer:
    return replace(moved, clip=replace(moved.clip, points=points))


def test_a_good_result_has_no_problem(walked: pliant.Transfer) -> None:
    assert names(walked) == []
    assert walked.judgement.motion == pytest.approx(1, abs=0.5)
    assert walked.judgement.angle < 15


def test_what_is_squashed_is_seen(walked: pliant.Transfer) -> None:
    squashed = names(with_points(walked, walked.clip.points * [1.0, 1.0, 0.4]))
    assert squashed[:2] == ["volume", "stretch"]


def test_what_does_not_move_is_seen(walked: pliant.Transfer) -> None:
    still = np.broadcast_to(walked.clip.shape.points, walked.clip.points.shape)
    assert "motion" in names(with_points(walked, still))


def test_limbs_that_point_elsewhere_are_seen(walked: pliant.Transfer) -> None:
    R = rotations.matrix(rotations.from_axis_angle([1, 0, 0], np.radians(50)))
    assert names(with_points(walked, walked.clip.points @ R.T)) == ["limbs"]


def test_feet_that_tip_are_seen(walked: pliant.Transfer) -> None:
    """Where the source's stand: all the time."""
    found = walked.registered
    planted = {node: np.ones(6, dtype=bool) for node in found.contacts.planted}
    standing = replace(walked, registered=replace(found, contacts=replace(found.contacts, planted=planted)))
    rest = np.broadcast_to(walked.clip.shape.points, walked.clip.points.shape)
    assert max(map(abs, with_points(standing, rest).judgement.feet.values())) < 1e-6
    R = rotations.matrix(rotations.from_axis_angle(found.target.frame[0], np.radians(20)))
    tipped = with_points(standing, rest @ R.T)
    assert tipped.judgement.feet == pytest.approx({"left leg": -20, "right leg": -20}, abs=2)
    assert "feet" in names(tipped)


@pytest.mark.parametrize(("height", "seen"), [(0.02, False), (0.08, True)])
def test_feet_that_float_are_seen(walked: pliant.Transfer, height: float, seen: bool) -> None:
    """Above the floor by a share of the height, while the source's stand: all the time."""
    found, rest = walked.registered, walked.clip.shape.points
    up, tall = found.target.frame[1], np.ptp(rest @ found.target.frame[1])
    planted = {node: np.ones(6, dtype=bool) for node in found.contacts.planted}
    standing = replace(walked, registered=replace(found, contacts=replace(found.contacts, planted=planted)))
    raised = with_points(standing, np.broadcast_to(rest + height * tall * up, walked.clip.points.shape))
    assert raised.judgement.floating == pytest.approx({"left leg": height, "right leg": height}, abs=0.005)
    assert ("floating" in names(raised)) == seen
    in_the_air = replace(found.contacts, planted={node: ~stands for node, stands in planted.items()})
    assert not replace(raised, registered=replace(found, contacts=in_the_air)).judgement.floating


def test_a_tail_that_goes_along_does_not_hide_motion(walked: pliant.Transfer) -> None:
    """Only limbs that follow others count."""
    found, moving = walked.registered, walked.judgement.motion
    tail = [(one, other) for one, other in found.match.pairs if other.role == "tail"]
    kept = tuple(pair for pair in found.match.pairs if pair not in tail)
    chains = tuple(
        chain for pair, chain in zip(found.match.pairs, found.follower.pairs, strict=True) if pair not in tail
    )
    fewer = replace(found, match=replace(found.match, pairs=kept), follower=replace(found.follower, pairs=chains))
    assert tail
    assert replace(walked, registered=fewer).judgement.motion >= 0.8 * moving
    none = replace(found, match=replace(found.match, pairs=()), follower=replace(found.follower, pairs=()))
    assert replace(walked, registered=none).judgement.motion is None


@pytest.mark.parametrize(("ratio", "seen"), [(1.3, False), (2.0, True)])
def test_feet_that_slide_are_seen(walked: pliant.Transfer, ratio: float, seen: bool) -> None:
    """Farther than the source's, each over its height: in every frame by 2 % of the source's."""
    found, rest, count = walked.registered, walked.clip.shape.points, len(walked.clip)
    body, target = found.source.body, found.target
    way = np.arange(count)[:, None, None] * 0.02
    tall = [float(np.ptp(places @ of.frame[1])) for places, of in ((body.tree.locations, body), (rest, target))]
    planted = {node: np.ones(len(found.source), dtype=bool) for node in found.contacts.planted}
    going = replace(found.source, positions=body.tree.locations + way * tall[0] * found.source.world[2])
    standing = replace(found, source=going, contacts=replace(found.contacts, planted=planted))
    sliding = replace(walked, registered=standing)
    judged = with_points(sliding, rest + ratio * way * tall[1] * target.frame[2]).judgement
    assert judged.slide.ratio == pytest.approx(ratio, rel=1e-6)
    assert judged.slide.source == pytest.approx(0.02 * (count - 1), rel=1e-6)
    assert judged.to_dict()["slide"]["target"] == pytest.approx(ratio * 0.02 * (count - 1), rel=1e-6)
    assert ("slide" in [sentence.partition(":")[0] for sentence in judged.problems]) == seen


def test_a_leg_inside_the_other_is_seen(walked: pliant.Transfer) -> None:
    body, rest = walked.registered.target, walked.clip.shape.points
    still = with_points(walked, np.broadcast_to(rest, walked.clip.points.shape))
    assert set(still.judgement.penetration) == {"left leg", "right leg", "left arm", "right arm"}
    assert max(still.judgement.penetration.values()) == 0
    left, right = (next(limb for limb in body.anatomy.limbs if limb.key == ("leg", side, 0)) for side in (1, -1))
    apart = right.path[-1] - left.path[-1]
    low = (rest @ body.frame[1] < left.at(0.3 * left.length) @ body.frame[1]) & ((rest - left.path[0]) @ apart < 0)
    for share, least, most in ((0.8, 0.2, 0.9), (3.0, 0.0, 0.1)):  # into the right leg, and out on its other side
        moved = with_points(walked, still.clip.points + share * low[:, None] * apart)
        assert least <= moved.judgement.penetration["left leg"] <= most
        assert ("penetration" in names(moved)) == (share < 1)


def test_a_single_wrong_frame_is_seen(walked: pliant.Transfer) -> None:
    """In the median it is not."""
    found, points = walked.registered, walked.clip.points.copy()
    R = rotations.matrix(rotations.from_axis_angle(found.target.frame[0], np.radians(75)))
    points[4] = points[4] @ R.T
    judged = with_points(walked, points).judgement
    assert judged.angle < 15
    assert {worst.frame for worst in judged.worst_limbs.values()} == {4}
    assert [name for name in names(with_points(walked, points)) if name == "limbs"] == ["limbs"]
    assert "in frame 4" in next(sentence for sentence in judged.problems if sentence.startswith("limbs"))
    assert judged.to_dict()["worst_limbs"]["left leg"]["frame"] == 4


def test_a_single_limb_that_is_torn_is_seen(walked: pliant.Transfer) -> None:
    """Of all edges it has too few to count: the end of an arm is pulled out."""
    limb = next(one for one in walked.registered.target.anatomy.limbs if one.role == "arm")
    name = walked.registered.target.anatomy.named(limb)
    tip, rest, points = limb.path[-1], walked.clip.shape.points, walked.clip.points.copy()
    near = np.linalg.norm(rest - tip, axis=1) < 0.2 * limb.length
    points[3, near] += 3 * (points[3, near] - points[3, near].mean(axis=0))
    judged = with_points(walked, points).judgement
    assert judged.stretch.max() < 1.8
    assert judged.limb_stretch[name].frame == 3
    assert judged.limb_stretch[name].factor > 1.8
    assert f"{name} {judged.limb_stretch[name].factor:.2g} times in frame 3" in " ".join(judged.problems)


def test_a_limb_that_is_squeezed_is_seen_and_one_that_bends_is_not(walked: pliant.Transfer) -> None:
    """The inside of a bend gets shorter; a limb that is squeezed has edges of 0.4 of their length all along it."""
    body, rest = walked.registered.target, walked.clip.shape.points
    limb = next(one for one in body.anatomy.limbs if one.role == "arm")
    way = limb.path[-1] - limb.path[0]
    along = (rest - limb.path[0]) @ way / (way @ way)
    beside = np.linalg.norm(rest - limb.path[0] - along[:, None] * way, axis=1)
    arm = ((along > 0) & (beside < 0.5 * limb.length))[:, None]
    share = np.clip((along - 0.1) / 0.7, 0, 1)
    bend = rotations.matrix(rotations.from_axis_angle(body.frame[2], share * np.radians(165)))
    bent = limb.at(0.5 * limb.length) + np.einsum("nij,nj->ni", bend, rest - limb.at(0.5 * limb.length))
    squeezed = limb.path[0] + (rest - limb.path[0]) / 2.5
    for moved, seen in ((bent, False), (squeezed, True)):
        judged = with_points(walked, np.where(arm, moved, rest)[None].repeat(6, axis=0)).judgement
        assert (body.anatomy.named(limb) in " ".join(s for s in judged.problems if s.startswith("stretch"))) == seen


@pytest.mark.parametrize(("source", "target", "seen"), [(1.6, 1.8, False), (1.6, 2.0, True), (1 / 3, 1 / 3.5, False),
                                                        (1 / 3, 1 / 3.7, True)])  # fmt: skip
def test_a_limb_may_be_stretched_or_squeezed_a_fifth_more_than_the_source(
    walked: pliant.Transfer, source: float, target: float, seen: bool
) -> None:
    rest, base = walked.clip.shape.points, gallery.creature(900).base
    own = Animation(base, source * base.points[None].repeat(6, axis=0))
    judged = judge(
        Animation(walked.clip.shape, target * rest[None].repeat(6, axis=0)), own, walked.registered, np.arange(6.0)
    )
    assert any(" of a limb's edges" in sentence for sentence in judged.problems) == seen


def test_limbs_are_compared_at_the_times_that_are_shown() -> None:
    target = gallery.creature(900).base
    walk = gallery.creature_walk(12)
    some = pliant.transfer(walk, target, build_cage(target, faces=160), "auto", lattice=16, frames=[8.0, 2.5])
    np.testing.assert_allclose(some.times, [8.0, 2.5])
    right = some.judgement.angle
    wrong = judge(some.clip, some.source, some.registered, np.array([2.5, 8.0])).angle
    assert right < wrong


def test_what_runs_through_itself_is_seen_and_other_parts_do_not_count() -> None:
    box = box_mesh(400, np.array([4.0, 1.0, 1.0]), 0.0)
    R = rotations.matrix(rotations.from_axis_angle([0.1, 0.3, 1.0], np.radians(165)))
    right = (box.points[:, 0] > box.points[:, 0].mean())[:, None]
    bent = np.where(right, (box.points - box.points.mean(axis=0)) @ R.T + box.points.mean(axis=0), box.points)
    folded = Animation(box, np.stack([box.points, bent]))
    assert new_crossings(folded) > 0.1
    two = Mesh(
        np.concatenate([box.points, box.points + np.array([0, 3, 0])]),
        np.concatenate([box.triangles, box.triangles + len(box.points)]),
    )
    over = two.points - np.where(np.arange(len(two.points)) < len(box.points), 0, 2.5)[:, None] * [0, 1, 0]
    assert new_crossings(Animation(two, np.stack([two.points, over]))) == 0


@pytest.mark.parametrize("factor", [1.5, 1 / 1.5])
def test_stretch_is_the_factor_longer_or_shorter(factor: float) -> None:
    box = box_mesh(200, np.array([2.0, 1.0, 1.0]), 0.0)
    assert edge_stretch(Animation(box, (factor * box.points)[None]))[0] == pytest.approx(1.5)
    assert edge_stretch(Animation(box, box.points[None]))[0] == pytest.approx(1)


def test_articulation_is_the_same_wherever_a_body_goes_and_whatever_its_size() -> None:
    gait = gallery.animal_gait(500, frames=6).points
    turns = rotations.matrix(rotations.from_axis_angle([0, 1, 0], np.linspace(0, 4, 6)))
    moved = 3 * np.einsum("fij,fnj->fni", turns, gait) + np.linspace(0, 9, 6)[:, None, None]
    assert articulation(moved) == pytest.approx(articulation(gait), rel=1e-3)
    assert articulation(np.repeat(gait[:1], 4, axis=0)) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize("held", [False, True])
def test_feet_hands_and_heads_are_rigid_unless_told(walked: pliant.Transfer, held: bool) -> None:
    """Wherever the cage has them: one that is held does not travel with the motion."""
    if held:
        walk, target = gallery.creature_walk(6), walked.clip.shape
        away = walk.translations.copy()
        away[:, 0, 2] += np.linspace(0, 2, 6)
        middle = int(np.argmin(np.linalg.norm(target.points - target.points.mean(axis=0), axis=1)))
        gone = replace(walk, translations=away)
        walked = pliant.transfer(gone, target, walked.rig.cage, "auto", lattice=16, held=[middle])
    soft = replace(walked, clip=walked.rig.play(walked.cage.points, fps=walked.clip.fps))
    tree, rest = walked.registered.target.tree, walked.clip.shape.points
    checked = 0
    for end in extremities(walked.registered):
        a, tip = tree.locations[end.nodes[0]], tree.locations[end.nodes[-1]]
        along = (rest - a) @ (tip - a) / ((tip - a) @ (tip - a))
        beside = np.linalg.norm(rest - a - np.clip(along, 0, 1)[:, None] * (tip - a), axis=1)
        core = np.flatnonzero((along > 0.6) & (beside < 0.6 * np.linalg.norm(tip - a)))
        if len(core) < 4:
            continue
        bent, kept = (
            max(np.abs(pdist(points[core]) / pdist(rest[core]) - 1).max() for points in clip.points)
            for clip in (soft.clip, walked.clip)
        )
        assert kept < 0.02 or kept < 0.3 * bent
        checked += 1
    assert checked >= 3
    assert edge_stretch(walked.clip).max() < 1.15 * edge_stretch(soft.clip).max()  # nothing is torn
