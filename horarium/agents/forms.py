"""Form elements: what an administrator is shown for a setting of an agent.

A setting is configurable exactly where the value of its field is one of these. They are made by code and never read from
data, so that no stored form can pass for a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import UnionType
from typing import Any, ClassVar, Union, get_args, get_origin

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema


@dataclass(frozen=True, kw_only=True)
class FormElement:
    """The base of all form elements: a label, and a sentence that helps. Derive from it for elements of your own."""

    element: ClassVar[str]
    """What kind of control it is, for the user interface."""

    label: str
    help: str = ""

    def published(self) -> dict[str, Any]:
        """The element for a user interface: plain data that JSON holds."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return {"element": self.element, **own}

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, _handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.is_instance_schema(cls)


@dataclass(frozen=True, kw_only=True)
class TextInput(FormElement):
    """A text; `multiline` asks for room for several lines."""

    element: ClassVar[str] = "text"

    placeholder: str = ""
    multiline: bool = False


@dataclass(frozen=True, kw_only=True)
class NumberInput(FormElement):
    """A number, and the bounds that are shown for it. The field's own bounds decide."""

    element: ClassVar[str] = "number"

    minimum: float | None = None
    maximum: float | None = None


@dataclass(frozen=True, kw_only=True)
class SwitchInput(FormElement):
    """Yes or no."""

    element: ClassVar[str] = "switch"


@dataclass(frozen=True, kw_only=True)
class ChoiceInput(FormElement):
    """One of several values; `options` are the values with what is shown for each."""

    element: ClassVar[str] = "choice"

    options: Mapping[str, str]

    def published(self) -> dict[str, Any]:
        """See `FormElement.published`; the options are a list, since their order means something."""
        options = [{"value": value, "label": label} for value, label in self.options.items()]
        return super().published() | {"options": options}


class DataOnly:
    """In an `Annotated` field: data is read as the field's data types alone, and a form element is no value.

    Without it pydantic would try the elements too, and tell of each fault once for every member of the union.
    """

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Read the data types of `source`."""
        return handler(data_type(source))


def data_type(annotation: Any) -> Any:
    """A type without the form elements among its alternatives."""
    if get_origin(annotation) not in {Union, UnionType}:
        return annotation
    kept = tuple(
        each for each in get_args(annotation) if not (isinstance(each, type) and issubclass(each, FormElement))
    )
    return Union[kept]  # noqa: UP007 - the alternatives are known at run time only
