"""instructor: objects from a model, over tools and over JSON schemas. Installed from requirements-instructor.txt."""
import pytest

from conftest import MODEL

instructor = pytest.importorskip("instructor", reason="instructor isn't installed (tests/api/requirements-instructor.txt)")
pydantic = pytest.importorskip("pydantic")


class Pet(pydantic.BaseModel):
    name: str = pydantic.Field(max_length=12)
    kind: str = pydantic.Field(pattern="^(cat|dog)$")
    legs: int = pydantic.Field(ge=0, le=8, multiple_of=1)


@pytest.mark.parametrize("mode", ["TOOLS", "TOOLS_STRICT", "JSON_SCHEMA"])
def test_makes_objects(client, mode):
    wrapped = instructor.from_openai(client, mode=getattr(instructor.Mode, mode))
    pet = wrapped.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "Describe a cat with four legs."}], response_model=Pet,
        temperature=0, max_tokens=200, max_retries=0)
    assert isinstance(pet, Pet) and len(pet.name) <= 12 and pet.kind in ("cat", "dog") and 0 <= pet.legs <= 8


def test_streams_partial_objects(client):
    wrapped = instructor.from_openai(client, mode=instructor.Mode.TOOLS)
    parts = list(wrapped.chat.completions.create_partial(
        model=MODEL, messages=[{"role": "user", "content": "Describe a cat."}], response_model=Pet, temperature=0, max_tokens=200))
    assert len(parts) > 2 and parts[-1].kind in ("cat", "dog")
