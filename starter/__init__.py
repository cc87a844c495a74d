"""The control plane's hand on Temporal: the command line, the controller, and a server to develop with."""
