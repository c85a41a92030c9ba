// Draws charts, follows jobs, and shows where sliders stand. Everything else is done by htmx and the server.
{
  const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
  const screen = { target: "main", select: "main", swap: "outerHTML" };

  const draw = async (chart) => {
    try {
      const made = await window.vegaEmbed(chart, JSON.parse(chart.dataset.chart), options);
      if (chart.dataset.click === "configuration") {
        made.view.addEventListener("click", (event, item) => {
          const name = item?.datum?.name;
          if (name) htmx.ajax("POST", "/choose/load", { ...screen, values: { name } });
        });
      }
    } catch (error) {
      chart.textContent = "This chart could not be drawn; the table holds the same numbers.";
      console.error(error);
    }
  };
  const drawAll = async () => {
    const fresh = [...document.querySelectorAll(".chart[data-chart]:not([data-begun])")];
    fresh.forEach((chart) => (chart.dataset.begun = ""));
    await Promise.all(fresh.map(draw));
    document.documentElement.dataset.drawn = String(Number(document.documentElement.dataset.drawn ?? 0) + 1);
  };
  drawAll();
  document.body.addEventListener("htmx:afterSettle", drawAll);

  // A slider has positions, and says the value at its own.
  document.body.addEventListener("input", ({ target }) => {
    if (target.type !== "range") return;
    const value = target.dataset.values.split(",")[target.value] || "as k";
    target.setAttribute("aria-valuetext", value);
    target.closest(".slider").querySelector("output").textContent = value;
  });

  // What acts like a button is one for the keyboard, too.
  document.body.addEventListener("keydown", (event) => {
    if (event.target.getAttribute?.("role") === "button" && ["Enter", " "].includes(event.key)) {
      event.preventDefault();
      event.target.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    }
  });

  document.body.addEventListener("click", (event) => {
    const ask = event.target.closest("[data-ask]");
    if (ask) {
      event.preventDefault();
      sessionStorage.setItem("ask", ask.dataset.ask); // the number of a query; its text is in no address
      location.assign("/ask");
    }
  });
  const asked = sessionStorage.getItem("ask");
  if (location.pathname === "/ask" && asked !== null) {
    sessionStorage.removeItem("ask");
    htmx.ajax("POST", "/ask", { target: "#answer", swap: "innerHTML", values: { query_id: asked } });
  }

  document.body.addEventListener("htmx:beforeRequest", ({ target }) => {
    if (target.id !== "jobs") document.getElementById("alert")?.replaceChildren();
  });
  document.body.addEventListener("htmx:afterSwap", ({ detail }) => {
    const alert = document.querySelector("#alert .alarm");
    if (alert && detail.target.id === "alert") alert.scrollIntoView({ block: "center" });
    // A form may answer with another screen.
    const main = document.getElementById("main");
    if (main.dataset.path === location.pathname) return;
    history.replaceState(null, "", main.dataset.path);
    document.title = `${document.querySelector(`.screens a[href="${main.dataset.path}"]`).textContent} · queryveil studio`;
    for (const link of document.querySelectorAll(".screens a")) {
      if (link.pathname === main.dataset.path) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  });

  // Jobs: shown anew whenever something changes; a screen is shown again after the jobs that it depends on.
  const show = () => htmx.ajax("GET", document.getElementById("main").dataset.path, screen);
  // What somebody is typing is not taken away from them.
  const typing = (main) => main.contains(document.activeElement) && document.activeElement.matches("select, input:not([type=range], [type=checkbox])");
  const offer = () => {
    const [note, button] = ["p", "button"].map((name) => document.createElement(name));
    note.className = "note";
    button.textContent = "Show what is new";
    button.addEventListener("click", show);
    note.append("Work has ended since this page was shown. ", button);
    document.getElementById("alert").replaceChildren(note);
  };
  let ended = null;
  const follow = (message) => {
    const jobs = JSON.parse(message.data);
    const done = jobs.filter(([, , state]) => !["waiting", "running"].includes(state)).map(([id, kind]) => `${id} ${kind}`);
    htmx.trigger(document.body, "jobs");
    const main = document.getElementById("main");
    const wanted = main.dataset.after.split(" ");
    const fresh = ended === null ? [] : done.filter((one) => !ended.includes(one));
    ended = done;
    if (fresh.some((one) => wanted.includes(one.split(" ")[1]))) typing(main) ? offer() : show();
    document.documentElement.dataset.jobs = message.data;
  };
  // A browser opens few connections to one place, so tabs that nobody sees have none.
  let source = null;
  const listen = () => {
    source?.close();
    source = document.hidden ? null : new EventSource("/events");
    source?.addEventListener("message", follow);
  };
  listen();
  document.addEventListener("visibilitychange", listen);

  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .long)")];
    folded.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((one) => (one.open = false)));
}
