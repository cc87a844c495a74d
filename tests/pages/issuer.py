"""A small issuer of OpenID Connect: it really listens, keeps codes that work once, checks PKCE and the client, and signs."""

import base64
import hashlib
import json
import secrets
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT = "horarium"
SECRET = "a secret of the client, long enough"
KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
OTHER_KEY = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)


class TestIssuer:
    """`claims` are put over what an ID token says, and `discovered` over what the issuer publishes; `sign_with` and `headers` change how it is signed.

    `asked` are the paths that were asked for. Nothing is answered while `answers` is clear.
    """

    __test__ = False

    def __init__(self) -> None:
        self.claims: dict[str, Any] = {}
        self.sign_with: Any = KEY
        self.algorithm = "RS256"
        self.is_up = True
        self.asked: list[str] = []
        self.answers = threading.Event()
        self.answers.set()
        self.discovered: dict[str, Any] = {}
        self.discovered_issuer: str | None = None
        self.answer: dict[str, Any] | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.token_requests: list[dict[str, str]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self.answers.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def authorize(self, address: str) -> str:
        """What a browser is led back to after somebody signed in at the issuer."""
        asked = {name: value for name, (value,) in parse_qs(urlsplit(address).query).items()}
        assert address.startswith(f"{self.url}/authorize?")
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = secrets.token_urlsafe(16)
        self.codes[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_GET(self) -> None:
                issuer.asked.append(self.path)
                issuer.answers.wait()
                if not issuer.is_up:
                    self._tell(503, {})
                elif self.path == "/.well-known/openid-configuration":
                    self._tell(200, issuer.discovery())
                elif self.path == "/keys":
                    self._tell(200, issuer.keys())
                elif self.path.startswith("/authorize?"):
                    self.send_response(303)
                    self.send_header("Location", issuer.authorize(issuer.url + self.path))
                    self.send_header("Content-Length", "0")
                    self.end_headers()
                else:
                    self._tell(404, {})

            def do_POST(self) -> None:
                data = self.rfile.read(int(self.headers["Content-Length"])).decode()
                if not issuer.is_up:
                    self._tell(503, {})
                    return
                self._tell(*issuer.exchange(dict(parse_qsl(data)), self.headers.get("Authorization", "")))

            def _tell(self, status: int, document: dict[str, Any]) -> None:
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked may have gone
                    self.end_headers()
                    self.wfile.write(data)

        return Handler

    def discovery(self) -> dict[str, Any]:
        return {
            "issuer": self.discovered_issuer or self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic"],
            **self.discovered,
        }

    def keys(self) -> dict[str, Any]:
        key = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key()))
        return {"keys": [{**key, "kid": "one", "alg": "RS256", "use": "sig"}]}

    def exchange(self, asked: dict[str, str], authorization: str) -> tuple[int, dict[str, Any]]:
        """Give tokens for a code, once, to the client that asked for it and holds the verifier."""
        self.token_requests.append(asked)
        expected = "Basic " + base64.b64encode(f"{CLIENT}:{SECRET}".encode()).decode()
        if authorization.replace("%20", " ").replace("+", " ") != expected and authorization != expected:
            return 401, {"error": "invalid_client"}
        begun = self.codes.pop(asked.get("code", ""), None)
        digest = hashlib.sha256(asked.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if (
            begun is None
            or asked.get("redirect_uri") != begun["redirect_uri"]
            or challenge != begun["code_challenge"]
            or asked.get("grant_type") != "authorization_code"
        ):
            return 400, {"error": "invalid_grant"}
        if self.answer is not None:
            return 200, self.answer
        return 200, {"access_token": "unused", "token_type": "Bearer", "id_token": self.token(begun["nonce"])}

    def token(self, nonce: str) -> str:
        now = int(time.time())
        told = {
            "iss": self.url,
            "sub": "ada",
            "aud": CLIENT,
            "iat": now,
            "exp": now + 300,
            "nonce": nonce,
            "org": "acme",
            "scope": "synapse:schedules:write",
            **self.claims,
        }
        told = {name: value for name, value in told.items() if value is not None}
        key = self.sign_with
        return jwt.encode(told, key, algorithm=self.algorithm, headers={"kid": "one"})
