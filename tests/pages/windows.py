"""A window of a real Chromium, watched for everything that must not happen in one, and what a text in it stands out by."""

import re
from typing import Any

from playwright.sync_api import Browser, BrowserContext, Page

from tests.pages.served import PATIENCE, Served


class Watched:
    """A window of a browser, with everything that must not happen in one. `allowed` are patterns of what may."""

    def __init__(self, chromium: Browser, **options: Any) -> None:
        self.complaints: list[str] = []
        self.allowed: list[str] = []
        self.hosts: set[str] = set()
        options = {"timezone_id": "Europe/Berlin", "locale": "en-GB", **options}
        self.context: BrowserContext = chromium.new_context(**options)
        self.context.set_default_timeout(PATIENCE)
        self.context.add_init_script(
            "document.addEventListener('securitypolicyviolation', (e) => console.error('POLICY ' + e.violatedDirective))"
        )
        self.page: Page = self.context.new_page()
        self.watch(self.page)

    def watch(self, page: Page) -> None:
        """Watch another window of the same browser too."""
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: (self.complaints.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: self.hosts.add(re.sub(r"^(\w+://[^/]+).*", r"\1", request.url)))

    def _hear(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def close(self, site: Served) -> None:
        """Close it, and fail where anything happened that must not."""
        self.context.close()
        left = [each for each in self.complaints if not any(re.search(allowed, each) for allowed in self.allowed)]
        assert left == []
        assert self.hosts <= {site.url}


CONTRAST = """
() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
  const rgba = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
  const light = ([r, g, b]) => { const f = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }; return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const ground = (each) => { for (let at = each; at; at = at.parentElement) { const found = rgba(getComputedStyle(at).backgroundColor); if (found[3] === 255) return found; } return [255, 255, 255, 255]; };
  const poor = [];
  for (const each of document.querySelectorAll('body *')) {
    if (![...each.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
    if (!each.checkVisibility() || each.closest('.hidden, .skip')) continue;
    const [a, b] = [light(rgba(getComputedStyle(each).color)), light(ground(each))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) poor.push(each.className + ' ' + each.textContent.trim().slice(0, 30) + ' ' + ratio.toFixed(2));
  }
  return poor;
}
"""
"""Texts of a page that stand out by less than 4.5 : 1 from what is behind them (WCAG 2.2, 1.4.3)."""
