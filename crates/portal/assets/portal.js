// Makes pages live. Everything can be read, and every form sent, without it.
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

  const prepare = (root) => {
    localise(root);
    addCopyButtons(root);
  };

  // Loads the region again from its page when the server says that something happened.
  const refresh = async (region) => {
    const source = region.dataset.source || location.href;
    const response = await fetch(source, { headers: { Accept: "text/html" } });
    if (!response.ok || response.redirected) return;
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const fresh = page.getElementById(region.id);
    if (!fresh) return;
    const isBusy = region.contains(document.activeElement) || region.querySelector("input:checked, details[open]");
    if (isBusy && !region.dataset.source) return;
    region.replaceChildren(...fresh.childNodes);
    prepare(region);
  };

  const follow = (region) => {
    let timer = 0;
    const stream = new EventSource(region.dataset.live);
    const soon = () => {
      if (timer) return;
      timer = setTimeout(() => {
        timer = 0;
        refresh(region).catch(() => {});
      }, 300);
    };
    stream.addEventListener("changed", soon);
    // The stream starts a moment after the page was made.
    stream.addEventListener("start", soon);
    addEventListener("pagehide", () => stream.close());
  };

  const isTyping = (target) => target.closest("input, textarea, select, [contenteditable]");

  // `/` searches, `g` and a letter opens a page of the menu, `?` lists them.
  let isGoing = false;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
    if (isGoing) {
      isGoing = false;
      const link = document.querySelector(`nav.side a[data-key="${CSS.escape(event.key)}"]`);
      if (link) { event.preventDefault(); link.click(); }
      return;
    }
    if (event.key === "g") { isGoing = true; setTimeout(() => { isGoing = false; }, 1500); }
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
    if (form.method === "post") {
      if (form.dataset.sent) { event.preventDefault(); return; }
      form.dataset.sent = "1";
    }
  });
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });

  addEventListener("change", (event) => {
    if (event.target.matches("[data-narrow]")) {
      document.querySelector("iframe.preview")?.classList.toggle("narrow", event.target.checked);
    }
  });

  // One menu is open at a time.
  addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("header details[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  prepare(document);
  for (const region of document.querySelectorAll("[data-live]")) follow(region);
})();
