"""A lesson's update, timed by phase beside its floor."""

from pathlib import Path

import pytest

from bench.gpu import lesson, peaks
from bench.gpu.config import GpuBenchConfig


def test_each_lesson_is_timed_but_the_first(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By phase, none of them outside the lesson; the floor of each is that of this device's peaks."""
    found = peaks.Peaks(flops_per_s=1e12, bytes_per_s=1e11)
    monkeypatch.setattr(lesson, "measure_peaks", lambda _device: found)
    advanced: list[str] = []
    samples = lesson.measure(GpuBenchConfig(model=str(tiny), device="cpu", lessons=1), advanced.append)
    assert advanced == ["lesson"] * 2
    assert len(samples["lesson_s"]) == 1
    phases = [samples[phase][0] for phase in lesson.PHASES]
    assert min(phases) > 0
    assert sum(phases) <= samples["lesson_s"][0]
    assert samples["peaks"] == vars(found)
    assert min(samples["floor_s"][phase] for phase in lesson.PHASES) > 0


def test_its_rows_are_a_real_lessons() -> None:
    """Anchors are seen alike by both; every other row has a note, and one that asks for nothing."""
    rows = lesson.lesson_rows(1000, seed=1)
    anchors = [row for row in rows if row.is_anchor]
    taught = [row for row in rows if row.is_taught]
    assert (len(anchors), len(taught)) == (8, 45)
    assert all(row.student_ids == row.teacher_ids and row.plain_ids is None for row in anchors)
    assert all(row.teacher_ids[: lesson.PROMPT] == row.student_ids and row.plain_ids for row in taught)
    assert rows == lesson.lesson_rows(1000, seed=1)


def test_the_table_has_each_phase_beside_its_floor() -> None:
    """And the ratio of the whole, with a target; memory where there is any to tell."""
    samples = {
        "lesson_s": [3.0, 5.0, 4.0], "teacher": [1.0], "steps": [2.0], "final": [1.0],
        "floor_s": {"teacher": 0.5, "steps": 1.0, "final": 0.5}, "memory_bytes": 0,
    }  # fmt: skip
    found = {row.name: row for row in lesson.rows(samples)}
    assert found["a lesson's update: 2.00 s at best"].median == 4.0
    assert found["  steps: 1.000 s at best"].median == 2.0
    assert (found["  measured / at best"].median, found["  measured / at best"].is_met) == (2.0, True)
    assert not any("memory" in name for name in found)
    assert any("memory" in row.name for row in lesson.rows(samples | {"memory_bytes": 1e9}))
