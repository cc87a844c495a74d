"""The forms of a page, as a browser would send them."""

import re
from html import unescape

import httpx

from tests.pages.browser import Browser


def form(answer: httpx.Response, button: str) -> tuple[str, dict[str, str]]:
    """The address and the fields of the one form whose button says this, with what the button itself sends."""
    inside = answer.text.partition("<main")[2]
    found = []
    for tag, content in re.findall(r"<form([^>]*)>(.*?)</form>", inside, re.DOTALL):
        pressed = re.search(r"<button([^>]*)>([^<]*)</button>", content)
        if pressed is not None and unescape(pressed[2]).strip() == button:
            fields = {
                unescape(name): unescape(value)
                for name, value in re.findall(r'<input[^>]*name="([^"]*)" value="([^"]*)"', content)
            }
            own = re.search(r'name="([^"]*)" value="([^"]*)"', pressed[1])
            found.append((_attribute(tag, "action"), fields | ({own[1]: own[2]} if own else {})))
    assert len(found) == 1, (button, len(found), inside)
    return found[0]


def press(browser: Browser, answer: httpx.Response, button: str, **changes: str) -> httpx.Response:
    """Send the form of a button, with some of its fields changed."""
    address, fields = form(answer, button)
    return browser.post(address, {**fields, **changes})


def has_button(answer: httpx.Response, button: str) -> bool:
    """Whether a page has a form with this button."""
    told = re.findall(r"<button[^>]*>([^<]*)</button>", answer.text.partition("<main")[2])
    return button in [unescape(each).strip() for each in told]


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf'{name}="([^"]*)"', tag)
    assert found, tag
    return unescape(found[1])
