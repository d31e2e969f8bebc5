// Updates open pages and helps with their forms. Without it, every page can be read and every form sent.
"use strict";
(() => {
  const format = new Intl.DateTimeFormat(undefined, {
    day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
  });
  const formatOld = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });

  // Times in the reader's time zone; the exact time stays in the title.
  const localise = (root) => {
    for (const element of root.querySelectorAll("time[datetime]")) {
      const at = new Date(element.dateTime);
      if (Number.isNaN(at.getTime())) continue;
      const isOld = Math.abs(Date.now() - at.getTime()) > 180 * 24 * 3600 * 1000;
      element.textContent = (isOld ? formatOld : format).format(at);
      element.title = `${at.toLocaleString()} (${element.dateTime})`;
    }
  };

  const say = (text) => {
    let region = document.getElementById("said");
    if (!region) {
      region = document.createElement("div");
      region.id = "said";
      region.className = "hidden";
      region.setAttribute("role", "status");
      document.body.append(region);
    }
    region.textContent = text;
  };

  // Copy buttons appear only where copying works.
  const addCopyButtons = (root) => {
    if (!navigator.clipboard) return;
    for (const element of root.querySelectorAll("[data-copy]:not([data-ready])")) {
      element.dataset.ready = "1";
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(element.dataset.copy || element.textContent);
        button.textContent = "Copied";
        say("Copied");
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      element.after(button);
    }
  };

  // Offers the reader's time zone in the list of a field.
  const addZone = (input) => {
    const option = document.createElement("option");
    option.value = Intl.DateTimeFormat().resolvedOptions().timeZone;
    input.list?.append(option);
  };

  // A box in the head of a list ticks all its rows.
  const addTickAll = (table) => {
    const head = table.querySelector("thead .tick");
    const boxes = [...table.querySelectorAll("tbody .tick input[type=checkbox]")];
    if (!head || boxes.length < 2) return;
    const all = document.createElement("input");
    all.type = "checkbox";
    all.autocomplete = "off";
    all.setAttribute("aria-label", "Tick all on this page");
    const show = () => {
      const count = boxes.filter((box) => box.checked).length;
      all.checked = count === boxes.length;
      all.indeterminate = count > 0 && !all.checked;
    };
    all.addEventListener("change", () => { for (const box of boxes) box.checked = all.checked; });
    table.addEventListener("change", show);
    head.replaceChildren(all);
    show();
  };

  const prepare = (root) => {
    localise(root);
    for (const table of root.querySelectorAll("table.rows")) addTickAll(table);
    addCopyButtons(root);
    for (const input of root.querySelectorAll("input[data-moment]")) localiseField(input);
    for (const input of root.querySelectorAll("input[data-zone]")) addZone(input);
  };

  // The HTML of each live region as the server made it.
  const served = new WeakMap();

  // Whether an update would discard what somebody types or has ticked.
  const isBusy = (region) => {
    const fields = [...region.querySelectorAll("input:not([type=hidden]), textarea, select")];
    const isChanged = (field) => (field.type === "checkbox" || field.type === "radio"
      ? field.checked !== field.defaultChecked
      : field.defaultValue !== undefined && field.value !== field.defaultValue);
    const isText = (field) => field.type !== "checkbox" && field.type !== "radio";
    return fields.some((field) => isChanged(field) || (field === document.activeElement && isText(field)));
  };

  // Elements of the same kind with the same target, to find the focus again after an update.
  const alike = (region, element) => [...region.querySelectorAll(element.tagName)].filter((one) =>
    one.className === element.className && one.getAttribute("href") === element.getAttribute("href"));

  const replace = (region, fresh) => {
    const open = [...region.querySelectorAll("details[open][data-key]")].map((one) => one.dataset.key);
    const focused = region.contains(document.activeElement) ? document.activeElement : null;
    const at = focused ? alike(region, focused).indexOf(focused) : -1;
    region.replaceChildren(...fresh.childNodes);
    for (const one of region.querySelectorAll("details[data-key]")) if (open.includes(one.dataset.key)) one.open = true;
    prepare(region);
    if (focused) alike(region, focused)[at]?.focus({ preventScroll: true });
  };

  // Loads the region again from its page. Returns true if somebody types or ticks in it: the update then has to wait.
  const refresh = async (region) => {
    if (isBusy(region)) return true;
    const source = region.dataset.source || location.href;
    const response = await fetch(source, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) return false;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(region.id);
    if (!fresh) return false;
    const html = fresh.innerHTML;
    const isNew = html !== served.get(region);
    if (isNew && isBusy(region)) return true;
    if (!fresh.dataset.poll) delete region.dataset.poll;
    if (isNew) {
      served.set(region, html);
      replace(region, fresh);
    }
    return false;
  };

  const followRegion = (region) => {
    let timer = 0;
    let stream = null;
    let isPending = false;
    let isRefreshing = false;
    let isWantedAgain = false;
    let retrySeconds = 5;
    // One refresh at a time: an older answer must not replace a newer one.
    const soon = () => {
      if (isRefreshing) isWantedAgain = true;
      if (timer || isRefreshing) return;
      timer = setTimeout(async () => {
        timer = 0;
        isRefreshing = true;
        isPending = await refresh(region).catch(() => false);
        isRefreshing = false;
        if (isWantedAgain) {
          isWantedAgain = false;
          soon();
        }
      }, 300);
    };
    // Shows an update that had to wait while somebody worked in the region.
    for (const name of ["focusout", "change", "toggle"]) {
      region.addEventListener(name, () => { if (isPending) soon(); }, true);
    }
    const close = () => {
      stream?.close();
      stream = null;
    };
    // A page that nobody sees has no stream: over HTTP/1.1 a browser opens at most six connections to a site.
    const follow = () => {
      if (document.visibilityState !== "visible") { close(); return; }
      if (stream || !region.dataset.live) return;
      stream = new EventSource(region.dataset.live);
      stream.addEventListener("changed", soon);
      // Load the region again: changes before the start of the stream were not reported.
      stream.addEventListener("start", () => {
        retrySeconds = 5;
        soon();
      });
      // The browser itself tries again after a lost connection, but not after an error such as 503.
      stream.addEventListener("error", () => {
        if (stream?.readyState !== EventSource.CLOSED) return;
        close();
        setTimeout(follow, retrySeconds * 1000);
        retrySeconds = Math.min(retrySeconds * 2, 60);
      });
    };
    // Loads the region again at intervals, for changes that no stream reports. Ends when the page has no `data-poll` any more.
    const poll = () => {
      const seconds = Number(region.dataset.poll);
      if (!seconds) return;
      setTimeout(() => {
        if (document.visibilityState === "visible") soon();
        poll();
      }, seconds * 1000);
    };
    document.addEventListener("visibilitychange", follow);
    addEventListener("pagehide", close);
    addEventListener("pageshow", follow);
    follow();
    poll();
  };

  // The menu of the page comes before the person's, which may have the same key.
  const linksWithKeys = () =>
    ["nav.side", "header.top"].flatMap((menu) => [...document.querySelectorAll(`${menu} a[data-key]`)]);
  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

  // Dialog with all keys, made of the menus of the page.
  const showShortcuts = () => {
    if (document.querySelector("dialog[open]")) return;
    const dialog = document.createElement("dialog");
    dialog.className = "shortcuts";
    dialog.setAttribute("aria-labelledby", "shortcuts-title");
    const title = document.createElement("h2");
    title.id = "shortcuts-title";
    title.textContent = "Keyboard shortcuts";
    const rows = new Map([["?", "These shortcuts"]]);
    if (document.querySelector("[data-search]")) rows.set("/", "Search");
    for (const link of linksWithKeys()) {
      if (!rows.has(`g ${link.dataset.key}`)) rows.set(`g ${link.dataset.key}`, link.textContent);
    }
    const list = document.createElement("dl");
    for (const [keys, name] of rows) {
      const row = document.createElement("div");
      const term = document.createElement("dt");
      term.append(...keys.split(" ").map((key) => {
        const one = document.createElement("kbd");
        one.textContent = key;
        return one;
      }));
      const words = document.createElement("dd");
      words.textContent = name;
      row.append(term, words);
      list.append(row);
    }
    const close = document.createElement("button");
    close.type = "button";
    close.className = "quiet";
    close.textContent = "Close";
    close.addEventListener("click", () => dialog.close());
    dialog.addEventListener("close", () => dialog.remove());
    dialog.append(title, list, close);
    document.body.append(dialog);
    dialog.showModal();
  };
  addEventListener("click", (event) => {
    if (!event.target.closest("[data-shortcuts]")) return;
    event.target.closest("details")?.removeAttribute("open");
    showShortcuts();
  });

  // `/` searches, `?` shows all keys, `g` and a letter opens a page of the menus.
  let isGoing = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (isGoing) {
      isGoing = false;
      const link = linksWithKeys().find((one) => one.dataset.key === event.key);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === "g") { isGoing = true; setTimeout(() => { isGoing = false; }, 1500); }
    if (event.key === "?") { event.preventDefault(); showShortcuts(); }
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
    }
  });

  // Two clicks send a form once.
  addEventListener("submit", (event) => {
    const form = event.target;
    const question = event.submitter?.dataset.confirm || form.dataset.confirm;
    if (question && !confirm(question)) { event.preventDefault(); return; }
    // A form with a target can be sent again: its answer is shown in a frame, and the form stays.
    if (form.method === "post" && !event.submitter?.formTarget) {
      if (form.dataset.sent) { event.preventDefault(); return; }
      form.dataset.sent = "1";
    }
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  // Asks before texts of a guarded form are lost.
  const isUnsaved = (form) => form.hasAttribute("data-unsaved") || [...form.elements].some((field) => {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    return "defaultValue" in field && field.type !== "hidden" && field.value !== field.defaultValue;
  });
  addEventListener("beforeunload", (event) => {
    const forms = [...document.querySelectorAll("form[data-guarded]:not([data-sent])")];
    if (forms.some(isUnsaved)) event.preventDefault();
  });

  addEventListener("change", (event) => {
    if (event.target.matches("[data-narrow]")) {
      document.querySelector("iframe.preview")?.classList.toggle("narrow", event.target.checked);
    }
  });

  // Suggestions for the last word of a search, from the list that browsers without this script offer as a whole.
  const suggest = (input) => {
    const list = input.list;
    if (!list) return;
    const known = [...list.options].map((option) => ({ value: option.value, words: option.textContent }));
    input.removeAttribute("list");
    const box = document.createElement("ul");
    box.id = "suggestions";
    box.className = "suggestions";
    box.hidden = true;
    box.setAttribute("role", "listbox");
    box.setAttribute("aria-label", "Suggestions");
    input.parentElement.classList.add("suggest");
    input.after(box);
    input.setAttribute("role", "combobox");
    input.setAttribute("aria-autocomplete", "list");
    input.setAttribute("aria-controls", box.id);
    input.setAttribute("aria-expanded", "false");
    let chosen = -1;

    const lastWord = () => /(?:^|\s)(-?)(\S*)$/.exec(input.value.slice(0, input.selectionStart ?? undefined));
    const close = () => {
      box.hidden = true;
      chosen = -1;
      input.setAttribute("aria-expanded", "false");
      input.removeAttribute("aria-activedescendant");
    };
    const mark = (at) => {
      chosen = at;
      [...box.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
      if (at >= 0) input.setAttribute("aria-activedescendant", box.children[at].id);
      else input.removeAttribute("aria-activedescendant");
    };
    const take = (value) => {
      const at = input.selectionStart ?? input.value.length;
      const word = lastWord()[2];
      const before = input.value.slice(0, at - word.length);
      const end = value.endsWith(":") ? value : `${value} `;
      input.value = before + end + input.value.slice(at).trimStart();
      input.setSelectionRange(before.length + end.length, before.length + end.length);
      input.focus();
      show();
    };
    const show = () => {
      const word = lastWord()?.[2].toLowerCase() ?? "";
      const tags = word.startsWith("tag:")
        ? [...new Set([...document.querySelectorAll("a.tag")].map((link) => link.textContent))]
          .map((tag) => ({ value: /\s/.test(tag) ? `tag:"${tag}"` : `tag:${tag}`, words: "on this page" }))
        : [];
      // Before the colon the keys are offered, after it the values.
      const offered = word.includes(":")
        ? [...known, ...tags]
        : [...known.filter(({ value }) => !/^(status|domain|template):./.test(value)), { value: "status:", words: "status" }];
      const shown = offered.filter(({ value }) => value.toLowerCase() !== word && value.toLowerCase().startsWith(word));
      box.replaceChildren(...shown.map(({ value, words }, place) => {
        const item = document.createElement("li");
        item.id = `suggestion-${place}`;
        item.setAttribute("role", "option");
        item.setAttribute("aria-selected", "false");
        const code = document.createElement("code");
        code.textContent = value;
        const hint = document.createElement("span");
        hint.textContent = words;
        item.append(code, hint);
        // On `mousedown`, because a click comes after the field has lost the focus.
        item.addEventListener("mousedown", (event) => { event.preventDefault(); take(value); });
        return item;
      }));
      chosen = -1;
      box.hidden = shown.length === 0;
      input.setAttribute("aria-expanded", String(!box.hidden));
    };
    input.addEventListener("input", show);
    input.addEventListener("click", show);
    input.addEventListener("blur", close);
    input.addEventListener("keydown", (event) => {
      if (box.hidden) { if (event.key === "ArrowDown") show(); return; }
      const count = box.children.length;
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        mark((chosen + (event.key === "ArrowDown" ? 1 : -1) + (chosen < 0 && event.key === "ArrowUp" ? 1 : 0) + count) % count);
      } else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) {
        event.preventDefault();
        take(box.children[chosen].querySelector("code").textContent);
      } else if (event.key === "Escape") {
        // Without this, the browser empties the field.
        event.preventDefault();
        close();
      }
    });
  };

  // Line numbers beside a text; the numbers of lines with a mistake are marked.
  const numberLines = (area) => {
    const bad = new Set(area.dataset.lines.split(",").filter(Boolean).map(Number));
    const frame = document.createElement("div");
    frame.className = "lined";
    const gutter = document.createElement("div");
    gutter.className = "gutter";
    gutter.setAttribute("aria-hidden", "true");
    area.before(frame);
    frame.append(gutter, area);
    const draw = () => {
      const count = area.value.split("\n").length;
      if (gutter.childElementCount !== count) {
        gutter.replaceChildren(...Array.from({ length: count }, (_, at) => {
          const line = document.createElement("span");
          line.textContent = String(at + 1);
          if (bad.has(at + 1)) line.className = "bad";
          return line;
        }));
      }
      gutter.scrollTop = area.scrollTop;
    };
    area.addEventListener("input", draw);
    area.addEventListener("scroll", draw);
    draw();
  };

  // Shows a field of the page, which is in UTC, in the reader's time zone. The form sends the exact time as well.
  const localiseField = (input) => {
    const at = new Date(`${input.value}Z`);
    const pad = (number) => String(number).padStart(2, "0");
    if (!Number.isNaN(at.getTime())) {
      input.defaultValue = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}T${pad(at.getHours())}:${pad(at.getMinutes())}`;
      input.value = input.defaultValue;
    }
    const note = input.parentElement.querySelector("small");
    if (note) note.textContent = note.textContent.replace("In UTC", "In your time zone");
    const exact = document.createElement("input");
    exact.type = "hidden";
    exact.name = input.dataset.moment;
    input.after(exact);
    input.form.addEventListener("submit", () => {
      const chosen = new Date(input.value);
      if (!Number.isNaN(chosen.getTime())) exact.value = chosen.toISOString();
    });
  };

  // A click on a mistake selects its line.
  addEventListener("click", (event) => {
    const link = event.target.closest("a[data-line]");
    const area = link && document.getElementById(link.hash.slice(1));
    if (!area?.setSelectionRange) return;
    event.preventDefault();
    area.closest("details")?.setAttribute("open", "");
    const lines = area.value.split("\n");
    const at = Math.max(0, Number(link.dataset.line) - 1);
    const start = lines.slice(0, at).reduce((sum, line) => sum + line.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[at] ?? "").length);
  });

  // One menu is open at a time.
  addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("header details[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  // Tells the server the reader's time zone, for the days of filters and charts.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone ?? "";
  if (/^[\w+/-]+$/.test(zone)) {
    document.cookie = `zone=${zone}; Path=/; Max-Age=31536000; SameSite=Lax${location.protocol === "https:" ? "; Secure" : ""}`;
  }

  // On a phone the menu is a strip: it begins with the current page in view.
  const strip = document.querySelector("nav.side ul");
  const current = strip?.querySelector("[aria-current]");
  if (current && strip.scrollWidth > strip.clientWidth) {
    const [inner, outer] = [current.getBoundingClientRect(), strip.getBoundingClientRect()];
    strip.scrollLeft += inner.left - outer.left - (outer.width - inner.width) / 2;
  }

  const regions = [...document.querySelectorAll("[data-live], [data-poll]")];
  for (const region of regions) served.set(region, region.innerHTML);
  prepare(document);
  for (const element of document.querySelectorAll("[data-scripted]")) element.hidden = false;
  for (const region of regions) followRegion(region);
  for (const input of document.querySelectorAll("[data-suggest]")) suggest(input);
  for (const area of document.querySelectorAll("textarea[data-lines]")) numberLines(area);
})();
