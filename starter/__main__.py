"""`python -m starter` is the command `horarium`."""

from starter.cli import main

if __name__ == "__main__":
    main()
