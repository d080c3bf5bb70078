"""engine.pocket.subjects: the pocket model's knowledge."""

from collections import Counter

import pytest

from engine.pocket.subjects import C_TO_F, DOMAINS, KG_TO_LB, KM_TO_MI, M_TO_FT, SPANISH, SUBJECTS

FACTORS = [(KG_TO_LB, 2.2046, 0.0), (M_TO_FT, 3.2808, 0.0), (KM_TO_MI, 0.62137, 0.0), (C_TO_F, 1.8, 32.0)]


def test_the_world_is_as_large_as_promised() -> None:
    """There are at least six domains, sixty subjects with several facts each and twelve ways of asking per domain."""
    assert len(DOMAINS) >= 6
    assert len(SUBJECTS) >= 60
    assert all(len(s.facts) >= 3 for s in SUBJECTS)
    for domain in DOMAINS.values():
        assert len({*domain.about, *(ask for fact in domain.facts for ask in fact.asks)}) >= 12


def test_every_domain_holds_some_subjects_out_and_keeps_most() -> None:
    """The evaluation can ask about a held-out subject of every domain, and training still has the most of each."""
    for name in DOMAINS:
        held_out = [s.is_held_out for s in SUBJECTS if s.domain == name]
        assert 0 < sum(held_out) < len(held_out) / 3


def test_no_two_subjects_share_a_name() -> None:
    """A name stands for one subject, whatever its letters' case."""
    assert max(Counter(s.name.lower() for s in SUBJECTS).values()) == 1


def test_every_fact_can_be_said_in_spanish() -> None:
    """Each English value has a Spanish one."""
    assert {value for s in SUBJECTS for value in s.values} <= SPANISH.keys()


def test_every_measure_can_be_converted() -> None:
    """Each subject's number stands in its domain's table."""
    assert all(s.measure in DOMAINS[s.domain].conversion for s in SUBJECTS)


@pytest.mark.parametrize(("table", "factor", "offset"), FACTORS)
def test_conversions_are_right(table: dict[int, int], factor: float, offset: float) -> None:
    """Each imperial number is the metric one converted and rounded."""
    for metric, imperial in table.items():
        assert abs(metric * factor + offset - imperial) <= 0.55


@pytest.mark.parametrize(("table", "factor", "offset"), FACTORS)
def test_metric_and_imperial_never_begin_alike(table: dict[int, int], factor: float, offset: float) -> None:
    """The two forms of a measure differ in their first digit, so one begun is never the other by chance."""
    assert all(str(metric)[0] != str(imperial)[0] for metric, imperial in table.items())


def test_every_way_of_asking_has_a_place_for_the_subject() -> None:
    """Questions name their subject; follow-up questions refer to it with "it" or "there"."""
    for domain in DOMAINS.values():
        assert all("{s}" in ask for ask in domain.about)
        for fact in domain.facts:
            assert all("{s}" in ask for ask in fact.asks)
            assert all({"it", "there"} & set(ask.rstrip("?").split()) for ask in fact.follow_ups)
