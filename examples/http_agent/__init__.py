"""An agent that is no Temporal worker: it takes runs over HTTP, and reports their outcome over HTTP."""
