{
  const specs = JSON.parse(document.getElementById("charts").textContent);
  // The interpreter of expressions needs no eval, which the policy of the page forbids.
  const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
  const draw = ([id, spec]) =>
    window.vegaEmbed(document.getElementById(id), spec, options).catch((error) => {
      document.getElementById(id).textContent = "This chart could not be drawn; the table holds the same numbers.";
      console.error(error);
    });
  Promise.all(Object.entries(specs).map(draw)).then(() => {
    document.documentElement.dataset.drawn = "yes";
  });
  // On paper nothing unfolds; tables of many pages stay away.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .long)")];
    folded.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((one) => (one.open = false)));
}
