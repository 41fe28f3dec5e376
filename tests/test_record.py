"""Classes of plain data behave as frozen dataclasses do, and `dataclasses` takes them for such."""

import dataclasses
import pickle
from functools import cached_property

import pytest

from reference_impl.format.record import field, mutable_record, record


@record
class Point:
    x: int
    label: str = "here"
    notes: dict[str, int] = field(default_factory=dict)

    @cached_property
    def double(self) -> int:
        return 2 * self.x


@record
class Named(Point):
    x: int
    name: str = "n"


@mutable_record
class Counter:
    count: int = 0


def test_fields_come_in_order_by_position_or_by_name() -> None:
    assert vars(Point(1)) == {"x": 1, "label": "here", "notes": {}}
    assert list(vars(Point(notes={}, label="there", x=2))) == ["x", "label", "notes"]
    assert Point(1).notes is not Point(1).notes
    assert repr(Point(1)) == "Point(x=1, label='here', notes={})"
    assert Named(1, name="m") == Named(1, "here", {}, "m") != Point(1)


@pytest.mark.parametrize(("given", "named"), [((), {}), ((1, "a", {}, 4), {}), ((1,), {"y": 2}), ((1,), {"x": 2})])
def test_wrong_arguments_are_refused(given: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(*given, **named)  # type: ignore[arg-type]


def test_records_are_equal_by_their_fields_and_do_not_change() -> None:
    one, other = Point(1), Point(1)
    assert one.double == 2 and one == other != Point(2)
    assert hash(Point(1, "a", None)) == hash(Point(1, "a", None))  # type: ignore[arg-type]
    with pytest.raises(AttributeError, match="cannot be changed"):
        one.x = 3  # type: ignore[misc]
    with pytest.raises(AttributeError, match="cannot be changed"):
        del one.x
    counter = Counter()
    counter.count += 1
    assert counter == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(counter)


def test_dataclasses_knows_records() -> None:
    point = Named(1, "a", {"b": 2})
    assert dataclasses.is_dataclass(Named)
    assert [item.name for item in dataclasses.fields(Named)] == ["x", "label", "notes", "name"]
    assert dataclasses.asdict(point) == {"x": 1, "label": "a", "notes": {"b": 2}, "name": "n"}
    assert dataclasses.replace(point, x=5) == Named(5, "a", {"b": 2})
    assert pickle.loads(pickle.dumps(point)) == point
