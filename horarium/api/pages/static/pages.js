// Times in the reader's zone, and pages that refresh themselves. Without it every page says the same, in UTC, until it is reloaded.
"use strict";

const REFRESH_HEADER = "X-Horarium-Refresh";
const ANNOUNCE_EVERY = 30_000;
const ANSWER_WITHIN = 10_000;

const readerTime = new Intl.DateTimeFormat(undefined, {
  weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", timeZoneName: "short",
});
const readerClock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
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

// Where an element is, so that the same one is found again in the page's next state.
function pathTo(element, root) {
  const path = [];
  for (let each = element; each && each !== root; each = each.parentElement) {
    if (each.id) return { id: each.id, path };
    path.unshift([...each.parentElement.children].indexOf(each));
  }
  return { id: root.id, path };
}

function follow(place) {
  let found = document.getElementById(place.id);
  for (const index of place.path) found = found && found.children[index];
  return found;
}

function replaceMain(main, next) {
  const active = document.activeElement;
  const focused = active && active !== main && main.contains(active) ? active : null;
  const place = focused && pathTo(focused, main);
  const address = focused && focused.getAttribute("href");
  const open = new Set([...main.querySelectorAll("details[id][open]")].map((each) => each.id));
  const seen = new Map([...main.querySelectorAll("[data-keep]")].map((each) => [each.dataset.keep, each]));
  const scrolled = new Map([...seen].map(([name, each]) => [name, [each.scrollLeft, each.scrollTop]]));
  const [x, y] = [window.scrollX, window.scrollY];
  main.replaceChildren(...next.childNodes);
  for (const each of main.querySelectorAll("details[id]")) each.open = open.has(each.id);
  for (const each of main.querySelectorAll("[data-keep]")) {
    const [left, top] = scrolled.get(each.dataset.keep) || [0, 0];
    each.scrollLeft = left;
    each.scrollTop = top;
  }
  tellReadersTime(main);
  if (focused) {
    // Rows may have moved: the same link is looked for before the same place.
    const links = address ? [...main.querySelectorAll("a[href]")] : [];
    const again = links.find((each) => each.getAttribute("href") === address) || follow(place);
    if (again) again.focus({ preventScroll: true });
  }
  window.scrollTo(x, y);
}

function refreshing(main) {
  const seconds = Number(main.dataset.refresh);
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
    if (content.innerHTML !== before) {
      const saying = substance(content);
      before = content.innerHTML;
      replaceMain(main, content);
      if (saying !== said) announce("The page was updated.", false);
      said = saying;
    }
    const made = next.querySelector("[data-made] time");
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
  if (main.dataset.refresh) refreshing(main);
  tellReadersTime(document);
  tellMade(document);
}

begin();
