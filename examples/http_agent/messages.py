"""Signed messages as the Standard Webhooks specification has them, in twenty lines and nothing but the standard library.

https://github.com/standard-webhooks/standard-webhooks has libraries for most languages, which do the same.
"""

import base64
import hmac
import time
from collections.abc import Mapping

TOLERANCE_SECONDS = 300


def headers(body: bytes, secret: bytes, *, message_id: str) -> dict[str, str]:
    """The headers that sign a body now."""
    seconds = str(int(time.time()))
    return {
        "webhook-id": message_id,
        "webhook-timestamp": seconds,
        "webhook-signature": f"v1,{_signature(body, secret, message_id, seconds)}",
    }


def is_signed(given: Mapping[str, str], body: bytes, secret: bytes, *, message_id: str) -> bool:
    """Whether a body came from who holds the secret, about what it should be about, and not long ago.

    The path is not signed, so the id is held against it. Otherwise one message could be played again as another.
    """
    seconds = given.get("webhook-timestamp", "")
    if given.get("webhook-id") != message_id or not seconds.isdecimal():
        return False
    if abs(int(seconds) - time.time()) > TOLERANCE_SECONDS:
        return False
    expected = f"v1,{_signature(body, secret, message_id, seconds)}"
    # Several while a secret is being replaced.
    return any(
        hmac.compare_digest(expected.encode(), each.encode()) for each in given.get("webhook-signature", "").split()
    )


def _signature(body: bytes, secret: bytes, message_id: str, seconds: str) -> str:
    return base64.b64encode(hmac.digest(secret, f"{message_id}.{seconds}.".encode() + body, "sha256")).decode()
