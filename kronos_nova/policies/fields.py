"""The base of all models of the policies file, and the definition of keys."""

import typing
from typing import Any

import pydantic


class FileMapping(pydantic.BaseModel):
    """The base of models of mappings in the policies file. Unknown keys, NaN and infinite numbers
    are refused."""

    model_config = pydantic.ConfigDict(frozen=True, extra='forbid', allow_inf_nan=False)

    @pydantic.field_validator('*', mode='before')
    @classmethod
    def _check_number(cls, value: Any, info: pydantic.ValidationInfo) -> Any:
        """Refuse ``true`` and ``false`` as numbers. Pydantic alone would read them as 1 and 0."""
        kind = cls.__pydantic_fields__[str(info.field_name)].annotation
        if isinstance(value, bool) and float in (kind, *typing.get_args(kind)):
            raise ValueError(f'must be a number, but is {str(value).lower()}')
        return value


def key(default: Any = ..., /, *, about: str, **rules: Any) -> Any:
    """Return the pydantic field for a key, with a description. Without a default, the key is
    required.

    :param about: description in reStructuredText, for the documentation and the JSON schema
    """
    return pydantic.Field(default, description=' '.join(about.split()), **rules)
