"""How values become payloads: as pydantic does it, with what it compiled for a type kept once for the whole process."""

import dataclasses

from temporalio.contrib.pydantic import PydanticPayloadConverter
from temporalio.converter import (
    CompositePayloadConverter,
    DataConverter,
    DefaultFailureConverterWithEncodedAttributes,
)

from worker.codec import EncryptingCodec
from worker.payload_keys import PayloadKeys

_ENCODINGS = tuple(PydanticPayloadConverter().converters.values())
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
