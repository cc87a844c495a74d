"""How values become payloads: as pydantic does it, with what it compiled for a type kept once for the whole process."""

import dataclasses
from typing import Any

from temporalio.api.common.v1 import Payload
from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
    EncodingPayloadConverter,
)

from worker.codec import ENCODING, EncryptingCodec, key_of
from worker.payload_keys import PAYLOAD_KEYS, PayloadKeys


class KeysMissing(Exception):
    """An encrypted payload came to a process that has no keys at all. The sentence says which one, and what to do.

    No `HorariumError` on purpose: a workflow in whose history it stands would fail of one for good, and has to be tried again.
    """


class _Sealed(EncodingPayloadConverter):
    """Stands for what only a codec can read, so that a process without one says what it lacks."""

    @property
    def encoding(self) -> str:
        """See `EncodingPayloadConverter`."""
        return ENCODING.decode()

    def to_payload(self, value: Any) -> Payload | None:  # any value is left to the others
        """See `EncodingPayloadConverter`."""
        del value
        return None

    def from_payload(self, payload: Payload, type_hint: type | None = None) -> Any:  # never returns
        """See `EncodingPayloadConverter`. Raises `KeysMissing`."""
        del type_hint
        key_id = key_of(payload)[:40]
        named = f"with the key {key_id!r}" if key_id else "by another program than this one"
        raise KeysMissing(
            f"A payload at Temporal is encrypted {named}, and this process has no keys. [payload_key_missing] "
            f"Set {PAYLOAD_KEYS} as for the other processes, and restart this one."
        )


_ENCODINGS = (*PydanticPayloadConverter().converters.values(), _Sealed())
"""Their cache of validators has a limit of its own, is safe between threads, and holds nothing of any one value."""


class SharedPayloadConverter(CompositePayloadConverter):
    """The pydantic converter of the SDK, which every workflow makes anew, around the same encodings each time.

    The SDK's own compiles its validators again for each workflow and keeps them as long as that is cached: 72 KiB and 4 ms of
    CPU for one of our schedules. Types that a workflow's own module defines would be kept here beyond that workflow, so that
    what stands in a payload is defined in modules that are passed through the sandbox.
    """

    def __init__(self) -> None:
        super().__init__(*_ENCODINGS)


DATA_CONVERTER = DataConverter(payload_converter_class=SharedPayloadConverter)
"""That of every client, worker and replayer of ours. What it writes and reads is what the SDK's pydantic converter does."""


def with_keys(converter: DataConverter, keys: PayloadKeys | None) -> DataConverter:
    """The same converter, which encrypts where there are keys. What a failure says is then a payload too."""
    if keys is None:
        return converter
    return dataclasses.replace(
        converter,
        payload_codec=EncryptingCodec(keys),
        failure_converter_class=DefaultFailureConverterWithEncodedAttributes,
    )
