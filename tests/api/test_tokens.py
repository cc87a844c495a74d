"""Who is let in: one valid token, and every way in which a token is not."""

import asyncio
import base64
import hashlib
import hmac
import json
import time

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from horarium.api.problems import Rejected
from horarium.api.tokens import (
    FetchedKeys,
    FixedKeys,
    TokenVerifier,
    VerificationKey,
    algorithm_of,
    keys_of,
)
from horarium.control.principals import WRITE_SCOPE, PrincipalKind
from tests.api.house import BASE, HUMAN, KEY, VERIFICATION, Api, token

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())
OTHER = Ed25519PrivateKey.generate()
URL = "https://keys.test/jwks.json"


def part(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def claims(**other):
    return {
        "sub": "ada",
        "kind": "human",
        "org": "acme",
        "scope": WRITE_SCOPE,
        "exp": int(time.time()) + 3_600,
        **other,
    }


def by_hand(header, body, signature=b""):
    return f"{part(header)}.{part(body)}.{part(signature)}"


def with_public_key_as_secret(algorithm="HS256"):
    """The attack that takes a public key for a shared secret."""
    secret = KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    signed = f"{part({'alg': algorithm, 'typ': 'JWT', 'kid': 'ours'})}.{part(claims())}"
    return f"{signed}.{part(hmac.digest(secret, signed.encode(), hashlib.sha256))}"


def signed(body, key=KEY, algorithm="EdDSA", **header):
    return jwt.encode(body, key, algorithm=algorithm, headers={"kid": "ours", **header})


def refused():
    now = int(time.time())
    return {
        "no token": None,
        "no JWT": "abc",
        "two parts": "abc.def",
        "empty": "",
        "not base64": "!.!.!",
        "header is a list": by_hand([], claims()),
        "header nested deeply": f"{part(b'[' * 5_000)}.{part(claims())}.",
        "alg none": by_hand({"alg": "none", "kid": "ours"}, claims()),
        "alg None": by_hand({"alg": "None", "kid": "ours"}, claims()),
        "alg none with a signature": by_hand({"alg": "none", "kid": "ours"}, claims(), b"x" * 64),
        "HS256 with the public key": with_public_key_as_secret(),
        "another algorithm for the key": signed(claims(), key=RSA, algorithm="RS256"),
        "wrong key": signed(claims(), key=OTHER),
        "unknown kid": signed(claims(), kid="theirs"),
        "kid is a number": by_hand({"alg": "EdDSA", "kid": 1}, claims()),
        "critical extension": signed(claims(), crit=["exp"]),
        "body changed": HUMAN.split(".")[0] + "." + part(claims(sub="mallory")) + "." + HUMAN.split(".")[2],
        "expired": signed(claims(exp=now - 60)),
        "not yet valid": signed(claims(nbf=now + 60)),
        "issued in the future": signed(claims(iat=now + 600)),
        "without exp": signed({name: value for name, value in claims().items() if name != "exp"}),
        "exp is a text": signed(claims(exp="soon")),
        "exp is infinite": signed(claims(exp=1e400)),
        "without sub": token(sub=None),
        "sub is empty": token(sub=""),
        "sub is a number": by_hand({"alg": "EdDSA", "kid": "ours"}, claims(sub=1)),
        "sub is too long": token(sub="a" * 201),
        "sub with a control character": token(sub="a\nb"),
        "sub of the command line": token(sub="local:ada"),
        "sub that looks like one of the command line": token(sub=" local:ada"),
        "sub with a space behind it": token(sub="ada "),
        "sub of the system": token(sub="system:controller"),
        "without kind": token(kind=None),
        "kind local": token(kind="local"),
        "kind unknown": token(kind="admin"),
        "kind is a list": token(kind=["human"]),
        "without org": token(org=None),
        "org is no name": token(org="../acme"),
        "scope is a list": token(scope=[WRITE_SCOPE]),
        "larger than any token": token(padding="x" * 9_000),
    }


@pytest.fixture(scope="module")
def bad():
    return refused()


@pytest.mark.parametrize("name", sorted(refused()))
def test_a_token_is_refused_without_saying_what_is_wrong_with_it(api, bad, name):
    answer = api.get("", by=bad[name])
    assert answer.status_code == 401, answer.text
    body = answer.json()
    assert body["code"] == "unauthenticated"
    assert answer.headers["www-authenticate"] == 'Bearer realm="horarium"'
    without = api.get("", by=None).json()
    assert {**body, "request_id": ""} == {**without, "request_id": ""}, "it teaches nothing"


@pytest.mark.parametrize("scheme", ["Basic", "bearer2", "Token"])
def test_only_the_bearer_scheme_is_known(api, scheme):
    assert api.get("", by=None, headers={"Authorization": f"{scheme} {HUMAN}"}).status_code == 401


def test_the_scheme_is_known_in_any_case(api):
    assert api.get("", by=None, headers={"Authorization": f"bearer {HUMAN}"}).status_code == 200


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (EC, "ES256"), (KEY, "EdDSA")])
def test_tokens_of_three_algorithms_are_taken(key, algorithm):
    verifier = TokenVerifier(FixedKeys((VerificationKey(kid="ours", algorithm=algorithm, key=key.public_key()),)))
    principal = asyncio.run(verifier.verify(signed(claims(), key=key, algorithm=algorithm)))
    assert (principal.name, principal.kind, principal.org_id) == ("ada", PrincipalKind.HUMAN, "acme")
    assert principal.scopes == {WRITE_SCOPE}


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (RSA.public_key(), "RS256"),
        (EC.public_key(), "ES256"),
        (KEY.public_key(), "EdDSA"),
        (ec.generate_private_key(ec.SECP384R1()).public_key(), None),
        (rsa.generate_private_key(public_exponent=65537, key_size=1024).public_key(), None),
        (KEY, None),
        ("secret", None),
    ],
)
def test_a_key_has_one_algorithm_or_none(key, algorithm):
    assert algorithm_of(key) == algorithm


def test_a_token_without_a_key_name_means_the_only_key():
    one = TokenVerifier(FixedKeys((VERIFICATION,)))
    two = TokenVerifier(FixedKeys((VERIFICATION, VerificationKey(kid="b", algorithm="EdDSA", key=OTHER.public_key()))))
    unnamed = jwt.encode(claims(), KEY, algorithm="EdDSA")
    assert asyncio.run(one.verify(unnamed)).name == "ada"
    with pytest.raises(Rejected, match="no valid token"):
        asyncio.run(two.verify(unnamed))


@pytest.mark.parametrize(
    ("given", "taken"),
    [
        ({"iss": "https://id.test", "aud": "horarium"}, True),
        ({"iss": "https://id.test", "aud": ["other", "horarium"]}, True),
        ({"iss": "https://evil.test", "aud": "horarium"}, False),
        ({"iss": "https://id.test", "aud": "other"}, False),
        ({"iss": "https://id.test"}, False),
        ({"aud": "horarium"}, False),
        ({}, False),
    ],
)
def test_issuer_and_audience_count_where_they_are_set(given, taken):
    verifier = TokenVerifier(FixedKeys((VERIFICATION,)), issuer="https://id.test", audience="horarium")
    if taken:
        assert asyncio.run(verifier.verify(token(**given))).name == "ada"
    else:
        with pytest.raises(Rejected, match="no valid token"):
            asyncio.run(verifier.verify(token(**given)))


def test_clocks_may_be_a_few_seconds_apart(api):
    now = int(time.time())
    assert api.get("", by=token(exp=now - 2)).status_code == 200
    assert api.get("", by=token(nbf=now + 2, iat=now + 2)).status_code == 200


# Keys by JWKS


def jwk(key, kid):
    kinds = {rsa.RSAPublicKey: RSAAlgorithm, ec.EllipticCurvePublicKey: ECAlgorithm}
    kind = next((each for known, each in kinds.items() if isinstance(key, known)), OKPAlgorithm)
    return {**json.loads(kind.to_jwk(key)), "kid": kid, "use": "sig"}


class Issuer:
    """An address with keys, which counts how often it is asked."""

    def __init__(self, *keys):
        self.document = {"keys": list(keys)}
        self.asked = 0
        self.now = 0.0
        self.answer = None
        self.hold = None

    async def __call__(self, _request):
        self.asked += 1
        if self.hold is not None:
            await self.hold.wait()
        return self.answer or httpx.Response(200, json=self.document)

    def keys(self):
        client = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return FetchedKeys(URL, client=client, clock=lambda: self.now)


def story(work):
    asyncio.run(work())


def test_keys_are_fetched_once_and_kept():
    issuer = Issuer(jwk(KEY.public_key(), "ours"), jwk(RSA.public_key(), "rsa"), jwk(EC.public_key(), "ec"))

    async def work():
        verifier = TokenVerifier(keys := issuer.keys())
        for key, kid, algorithm in ((KEY, "ours", "EdDSA"), (RSA, "rsa", "RS256"), (EC, "ec", "ES256")):
            assert (await verifier.verify(signed(claims(), key=key, algorithm=algorithm, kid=kid))).name == "ada"
        assert issuer.asked == 1
        await keys.close()

    story(work)


def test_an_unknown_key_is_asked_for_at_most_every_30_seconds():
    issuer = Issuer(jwk(KEY.public_key(), "ours"))

    async def work():
        verifier = TokenVerifier(keys := issuer.keys())
        await verifier.verify(HUMAN)
        rotated = signed(claims(), key=OTHER, kid="next")
        for _ in range(20):
            with pytest.raises(Rejected):
                await verifier.verify(rotated)
        assert issuer.asked == 1
        issuer.document = {"keys": [jwk(OTHER.public_key(), "next")]}
        issuer.now = 31
        assert (await verifier.verify(rotated)).name == "ada"
        assert issuer.asked == 2
        with pytest.raises(Rejected):
            await verifier.verify(HUMAN)
        await keys.close()

    story(work)


def test_many_who_wait_for_keys_make_one_fetch_and_known_keys_wait_for_none():
    issuer = Issuer(jwk(KEY.public_key(), "ours"))

    async def work():
        verifier = TokenVerifier(keys := issuer.keys())
        await asyncio.gather(*(verifier.verify(HUMAN) for _ in range(20)))
        assert issuer.asked == 1
        issuer.now, issuer.hold = 31, asyncio.Event()
        waiting = asyncio.create_task(verifier.verify(signed(claims(), key=OTHER, kid="next")))
        await asyncio.sleep(0.01)
        assert (await asyncio.wait_for(verifier.verify(HUMAN), 0.5)).name == "ada"
        waiting.cancel()
        issuer.hold.set()
        await keys.close()

    story(work)


def test_old_keys_are_renewed_behind_the_scenes_and_given_up_after_an_hour_without_an_answer():
    issuer = Issuer(jwk(KEY.public_key(), "ours"))

    async def work():
        verifier = TokenVerifier(keys := issuer.keys())
        await verifier.verify(HUMAN)
        issuer.now, issuer.answer = 11 * 60, httpx.Response(500)
        assert (await verifier.verify(HUMAN)).name == "ada"
        await asyncio.sleep(0.01)
        assert issuer.asked == 2
        issuer.now = 61 * 60
        with pytest.raises(Rejected) as refusal:
            await verifier.verify(HUMAN)
        assert (refusal.value.status, refusal.value.code) == (503, "keys_unavailable")
        issuer.now, issuer.answer = 62 * 60, None
        assert (await verifier.verify(HUMAN)).name == "ada"
        await keys.close()

    story(work)


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(500),
        httpx.Response(302, headers={"Location": "https://evil.test/"}),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json=[]),
        httpx.Response(200, json={"keys": []}),
        httpx.Response(200, json={"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "ours", "alg": "HS256"}]}),
        httpx.Response(200, json={"keys": [{"kty": "RSA", "n": "AQAB", "kid": "ours"}, 3]}),
        httpx.Response(200, text=" " * 300_000 + "{}"),
    ],
)
def test_an_address_that_gives_no_keys_lets_nobody_in(catalog, answer):
    issuer = Issuer()
    issuer.answer = answer
    api = Api(catalog, tokens=TokenVerifier(issuer.keys()))
    try:
        response = api.get("")
        assert (response.status_code, response.json()["code"]) == (503, "keys_unavailable")
        assert int(response.headers["retry-after"]) >= 1
    finally:
        api.close()


def test_keys_that_are_not_for_us_are_left_out():
    good = jwk(KEY.public_key(), "ours")
    others = [
        {**jwk(RSA.public_key(), "enc"), "use": "enc"},
        {**jwk(RSA.public_key(), "ps"), "alg": "PS256"},
        jwk(ec.generate_private_key(ec.SECP384R1()).public_key(), "p384"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "secret"},
        {**jwk(OTHER.public_key(), "x"), "kid": 3},
        {"kty": "unheard of"},
        {**jwk(OTHER.public_key(), "none"), "alg": "none"},
        {**jwk(EC.public_key(), "none, and elliptic"), "alg": "none"},
    ]
    assert [key.kid for key in keys_of({"keys": [*others, good]})] == ["ours"]


def test_of_two_tokens_none_is_believed(api):
    async def send(*tokens):
        async with api.client(None) as client:
            headers = [("Authorization", f"Bearer {each}") for each in tokens]
            return (await client.get(BASE, headers=headers)).status_code

    assert api.run(send(HUMAN)) == 200
    assert api.run(send(HUMAN, "other")) == 401
    assert api.run(send("other", HUMAN)) == 401
    assert api.run(send(HUMAN, HUMAN)) == 401
