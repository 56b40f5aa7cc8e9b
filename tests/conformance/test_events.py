"""The event stream: every event survives JSON, matches the schema that ships, and the schema matches the types."""

from __future__ import annotations

import json
import pickle
from importlib import resources

import cattrs
import jsonschema
import pytest

from conformance import events as e
from conformance import schemas
from tests.report_samples import every_event

SCHEMA = json.loads((resources.files("conformance") / "schemas" / "event.schema.json").read_text())
EVENTS = every_event()


def test_the_samples_are_every_kind_of_event() -> None:
    """The tests below speak for all events, for there is a sample of each."""
    assert {type(event).__name__ for event in EVENTS} == set(e.KINDS)


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_an_event_survives_json_and_pickle(event: e.Event) -> None:
    """What a journal or another process sends home is the event that was sent."""
    line = json.dumps(e.to_json(event))
    assert e.from_json(json.loads(line)) == event
    assert pickle.loads(pickle.dumps(event)) == event


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_a_line_matches_the_shipped_schema(event: e.Event) -> None:
    """Readers may rely on the schema, which allows no field more and none less."""
    data = json.loads(json.dumps(e.to_json(event)))
    jsonschema.Draft202012Validator(SCHEMA).validate(data)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft202012Validator(SCHEMA).validate({**data, "surplus": 1})


def test_an_unknown_field_or_event_is_refused() -> None:
    """A line of another version is refused by name instead of being read wrong."""
    data = e.to_json(e.Installing("x"))
    with pytest.raises(cattrs.ClassValidationError) as caught:
        e.from_json({**data, "surplus": 1})
    assert "surplus" in str(cattrs.transform_error(caught.value))
    with pytest.raises(KeyError, match="Nonsense"):
        e.from_json({"event": "Nonsense"})


@pytest.mark.parametrize("name", sorted(schemas.build()))
def test_shipped_schemas_are_those_of_the_types(name: str) -> None:
    """A type changed without `python -m conformance.schemas` is noticed here."""
    schema = schemas.build()[name]
    jsonschema.Draft202012Validator.check_schema(schema)
    assert (resources.files("conformance") / "schemas" / name).read_text() == schemas.text(schema)
