"""`python -m examples.http_agent [PORT]`: serve on this machine, with the secret in HORARIUM_SECRET_LINES."""

import os
import sys

from examples.http_agent.agent import LineCounter


def main() -> int:
    """Serve until interrupted."""
    secret = os.environ.get("HORARIUM_SECRET_LINES", "")
    if not secret:
        print(
            "Set HORARIUM_SECRET_LINES to at least 24 characters, here and for the workers and the API.",
            file=sys.stderr,
        )
        return 2
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8090
    with LineCounter(("127.0.0.1", port), secret.encode()) as server:
        print(f"Taking runs at http://127.0.0.1:{server.server_port}/", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
