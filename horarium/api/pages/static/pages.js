// Times in the reader's zone, and pages that refresh themselves. Without it every page says the same, in UTC, until it is reloaded.
"use strict";

const REFRESH_HEADER = "X-Horarium-Refresh";
const ANNOUNCE_EVERY = 120_000;
const ANSWER_WITHIN = 10_000;

const readerTime = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});
const readerClock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", timeZoneName: "short",
});
const readerZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

function sameWall(instant, zone) {
  const shown = (timeZone) =>
    new Intl.DateTimeFormat("en", { timeZone, dateStyle: "short", timeStyle: "short" }).format(instant);
  try {
    return shown(zone) === shown(readerZone);
  } catch {
    return false;
  }
}

function tellReadersTime(within) {
  for (const time of within.querySelectorAll("time[data-reader]")) {
    const instant = new Date(time.dateTime);
    const same = sameWall(instant, time.dataset.reader);
    time.hidden = same;
    time.textContent = same ? "" : `${readerTime.format(instant)} yours`;
    time.title = time.dateTime;
  }
}

function tellMade(within) {
  const made = within.querySelector("[data-made] time");
  if (made) made.textContent = readerClock.format(new Date(made.dateTime));
}

// Whether somebody has begun to fill a form of the page, or is in one.
function isBeingFilled(main) {
  const active = document.activeElement;
  if (active && main.contains(active) && active.matches("input, select, textarea")) return true;
  return [...main.querySelectorAll("input, textarea, select")].some((field) => {
    if (field.type === "hidden") return false;
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.tagName === "SELECT") {
      const first = [...field.options].findIndex((option) => option.defaultSelected);
      return field.selectedIndex !== Math.max(first, 0);
    }
    return field.value !== field.defaultValue;
  });
}

// Whether somebody has marked a part of the page, to copy it.
function isBeingCopied(main) {
  const selection = window.getSelection();
  return Boolean(selection && !selection.isCollapsed && main.contains(selection.anchorNode));
}

// What a page says without what passes by itself: whoever listens is told of changes, and not of the time.
function substance(main) {
  const copy = main.cloneNode(true);
  for (const each of copy.querySelectorAll(".distance, .passing, input[type=hidden]")) each.remove();
  return copy.innerHTML;
}

// What tells whether an element of the page's next state is the one that stands here.
function keyOf(element) {
  const named = element.id || element.dataset.key || element.getAttribute("aria-labelledby") || "";
  return `${element.tagName} ${named} ${element.getAttribute("class") || ""}`;
}

function alike(one, other) {
  if (one.nodeType !== other.nodeType) return false;
  return one.nodeType !== Node.ELEMENT_NODE || keyOf(one) === keyOf(other);
}

// Make a part of the page what its next state says. What stays the same stays as it is, with the focus in it, unfolded, scrolled to
// where it was, and under the finger of whoever presses it right now.
function become(old, next) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.data !== next.data) old.data = next.data;
    return;
  }
  for (const { name } of [...old.attributes]) {
    if (!next.hasAttribute(name) && !(name === "open" && old.id)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value && !(name === "open" && old.id)) old.setAttribute(name, value);
  }
  const wanted = [...next.childNodes];
  let at = old.firstChild;
  wanted.forEach((each, index) => {
    while (at && !alike(at, each)) {
      const here = at;
      if (wanted.slice(index + 1).some((later) => alike(here, later))) break;
      at = here.nextSibling;
      here.remove();
    }
    if (at && alike(at, each)) {
      become(at, each);
      at = at.nextSibling;
    } else {
      old.insertBefore(document.importNode(each, true), at);
    }
  });
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

function replaceMain(main, next) {
  const active = document.activeElement;
  const address = main.contains(active) && active.getAttribute("href");
  tellReadersTime(next);
  become(main, next);
  if (address && !active.isConnected) {
    // It was moved: the same link is looked for.
    const again = [...main.querySelectorAll("a[href]")].find((each) => each.getAttribute("href") === address);
    if (again) again.focus({ preventScroll: true });
  }
}

// A page that somebody decides on stays as they read it, and says so where it is outdated.
function outdated(main, content) {
  const [shown, now] = [main, content].map((each) => each.querySelector("[data-watched]")?.dataset.watched);
  return shown !== now;
}

function refreshing(main) {
  const seconds = Number(main.dataset.refresh || main.dataset.watch);
  const isWatched = Boolean(main.dataset.watch);
  const stale = document.querySelector("[data-stale]");
  const told = document.querySelector("[data-told]");
  let lastTold = 0;
  let before = main.innerHTML;
  let said = substance(main);
  let failing = false;

  const announce = (text, always) => {
    if (!always && Date.now() - lastTold < ANNOUNCE_EVERY) return;
    lastTold = Date.now();
    told.textContent = text;
  };
  const fails = (text) => {
    stale.textContent = ` · ${text}`;
    document.body.classList.add("is-stale");
    if (!failing) announce(text, true);
    failing = true;
  };
  const works = () => {
    stale.textContent = "";
    document.body.classList.remove("is-stale");
    if (failing) announce("The server answers again.", true);
    failing = false;
  };

  const look = async () => {
    let answer;
    try {
      answer = await fetch(window.location.href, {
        headers: { [REFRESH_HEADER]: "1" },
        credentials: "same-origin",
        cache: "no-store",
        redirect: "manual",
        signal: AbortSignal.timeout(ANSWER_WITHIN),
      });
    } catch {
      fails("the server does not answer");
      return true;
    }
    if (answer.status === 401) {
      fails("you are signed out; load the page again to sign in");
      return false;
    }
    if (!answer.ok) {
      fails(answer.status === 404 ? "this is not there any more" : `the server answers with ${answer.status}`);
      return true;
    }
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    // Meanwhile somebody may have begun to type.
    if (isBeingFilled(main) || isBeingCopied(main)) return true;
    if (next.documentElement.dataset.release !== document.documentElement.dataset.release) {
      window.location.reload();
      return false;
    }
    const content = next.getElementById("main");
    if (!content) return true;
    if (isWatched) {
      const notice = main.querySelector("[data-changed]");
      if (notice && notice.hidden && outdated(main, content)) {
        notice.hidden = false;
        announce(notice.textContent, true);
      }
    } else if (content.innerHTML !== before) {
      const saying = substance(content);
      before = content.innerHTML;
      replaceMain(main, content);
      if (saying !== said) announce("The page was updated.", false);
      said = saying;
    }
    const made = isWatched ? null : next.querySelector("[data-made] time");
    const shown = document.querySelector("[data-made] time");
    if (made && shown) {
      shown.dateTime = made.dateTime;
      tellMade(document);
    }
    works();
    return true;
  };

  const wait = () => new Promise((resolve) => setTimeout(resolve, seconds * 1000));
  const visible = () =>
    document.hidden
      ? new Promise((resolve) => document.addEventListener("visibilitychange", resolve, { once: true }))
      : Promise.resolve();
  const go = async () => {
    for (let goes = true; goes; ) {
      await wait();
      await visible();
      if (!document.hidden && !isBeingFilled(main)) goes = await look();
    }
  };
  go();
}

function begin() {
  const main = document.getElementById("main");
  if (main.dataset.refresh || main.dataset.watch) refreshing(main);
  tellReadersTime(document);
  tellMade(document);
}

begin();
