"""What an error says, as a log would show it."""


def told(error: BaseException | None) -> str:
    """The words of an error and of all that led to it."""
    words = ""
    while error is not None:
        words += f"{error!r} {error}\n"
        error = error.__cause__ or error.__context__
    return words
