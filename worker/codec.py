"""Encryption of what is stored at Temporal: inputs, results, failures, summaries. AES-256-GCM, with keys that rotate.

An encrypted payload is one of encoding `binary/encrypted`. Its metadata says in the clear which key it needs and which
workflow it belongs to; both are authenticated, so that a payload which somebody put into another workflow's history does
not open. The payload that was encrypted is inside as a whole, with its own metadata. Nothing is compressed: the length of
what was compressed tells of its content.

The namespace is not bound. A namespace may be restored or moved under another name, and a history replayed outside of any.
Whoever must keep two namespaces apart gives them different keys.
"""

import hashlib
import hmac
import os
from collections.abc import Sequence
from typing import Final, Self

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from google.protobuf.message import DecodeError
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from horarium.errors import Unavailable
from worker.payload_keys import PAYLOAD_KEYS, PayloadKeys

ENCODING: Final = b"binary/encrypted"
KEY_ID: Final = "horarium-key"
BOUND_TO: Final = "horarium-workflow"

_SALT_BYTES: Final = 16
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_PURPOSE: Final = b"horarium payload 1\n"
"""Part of what each key is derived from and of what is authenticated; another number is another form."""


class EncryptingCodec(PayloadCodec, WithSerializationContext):
    """Encrypts with the first key and decrypts with all.

    What is not encrypted is read as it is, so that histories of before go on; of who may write into Temporal's database, it
    protects what he would read, and not against what he writes in the clear.
    """

    def __init__(self, keys: PayloadKeys, *, workflow_id: str | None = None) -> None:
        self._keys = keys
        self._workflow_id = workflow_id

    def with_context(self, context: SerializationContext) -> Self:
        """The same for the payloads of one workflow, its activities' among them."""
        workflow_id = None
        if isinstance(context, WorkflowSerializationContext | ActivitySerializationContext):
            workflow_id = context.workflow_id
        return type(self)(self._keys, workflow_id=workflow_id)

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Encrypt each payload."""
        return [self._encrypted(each) for each in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """Decrypt each payload that is encrypted.

        Raises `Unavailable` with `payload_key_missing` for one whose key is not here, which is put right by giving it; and with
        `payload_unreadable` for one that was damaged, or is of another workflow or another codec.
        """
        return [self._decrypted(each) for each in payloads]

    def _encrypted(self, payload: Payload) -> Payload:
        key_id, bound_to = self._keys.first, self._workflow_id
        salt, nonce = os.urandom(_SALT_BYTES), os.urandom(_NONCE_BYTES)
        cipher = _cipher(self._keys.by_id[key_id], salt)
        sealed = cipher.encrypt(nonce, payload.SerializeToString(), _authenticated(key_id, bound_to))
        metadata = {"encoding": ENCODING, KEY_ID: key_id.encode()}
        if bound_to is not None:
            metadata[BOUND_TO] = bound_to.encode()
        return Payload(metadata=metadata, data=salt + nonce + sealed)

    def _decrypted(self, payload: Payload) -> Payload:
        if payload.metadata.get("encoding") != ENCODING:
            return payload
        if KEY_ID not in payload.metadata:
            raise _unreadable("It was encrypted by another program than this one.")
        key_id = key_of(payload)
        if key_id not in self._keys.by_id:
            raise Unavailable(
                "payload_key_missing",
                f"A payload at Temporal is encrypted with the key {key_id[:40]!r}, and this process does not have it.",
                next_step=f"Add {key_id[:40]!r} to {PAYLOAD_KEYS} behind the key that encrypts, and restart the process.",
            )
        bound_to = payload.metadata[BOUND_TO].decode(errors="replace") if BOUND_TO in payload.metadata else None
        if None not in (bound_to, self._workflow_id) and bound_to != self._workflow_id:
            raise _unreadable("It belongs to another workflow than the one in whose history it stands.")
        salt, rest = payload.data[:_SALT_BYTES], payload.data[_SALT_BYTES:]
        nonce, sealed = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
        if len(sealed) < _TAG_BYTES:
            raise _unreadable("It is too short.")
        try:
            opened = _cipher(self._keys.by_id[key_id], salt).decrypt(nonce, sealed, _authenticated(key_id, bound_to))
            return Payload.FromString(opened)
        except (InvalidTag, DecodeError) as error:
            raise _unreadable(
                f"It was changed, or the key {key_id!r} here is not the one that it was encrypted with."
            ) from error


def key_of(payload: Payload) -> str:
    """The id of the key that an encrypted payload needs, as far as it says so; it may say anything."""
    return payload.metadata[KEY_ID].decode("ascii", errors="replace")


def _cipher(key: bytes, salt: bytes) -> AESGCM:
    """A cipher for one payload: a key of its own, so that no number of payloads makes a repeated nonce likely."""
    return AESGCM(hmac.digest(key, _PURPOSE + salt, hashlib.sha256))


def _authenticated(key_id: str, bound_to: str | None) -> bytes:
    # A key's id has no end of line in it, so that the two cannot be read otherwise.
    return _PURPOSE + key_id.encode() + (b"" if bound_to is None else b"\n" + bound_to.encode())


def _unreadable(why: str) -> Unavailable:
    return Unavailable(
        "payload_unreadable",
        f"A payload at Temporal cannot be decrypted. {why}",
        next_step=f"Hold {PAYLOAD_KEYS} of the processes against one another, and the workflow's history against a backup.",
    )
