{
  // The interpreter of expressions needs no eval, which the policy of the page forbids.
  const options = { ast: true, renderer: "svg", actions: false, defaultStyle: false, tooltip: { disableDefaultStyle: true } };
  let specs;
  const draw = async (chart) => {
    try {
      specs ??= JSON.parse(document.getElementById("charts").textContent);
      await window.vegaEmbed(chart, specs[chart.id], options);
      return true;
    } catch (error) {
      chart.textContent = "This chart could not be drawn; the table holds the same numbers.";
      console.error(error);
      return false;
    }
  };
  Promise.all([...document.querySelectorAll(".chart")].map(draw)).then((drawn) => {
    document.documentElement.dataset.drawn = drawn.every(Boolean) ? "yes" : "no";
  });
  // On paper nothing unfolds; tables of many pages stay away.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open], .long)")];
    folded.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => folded.forEach((one) => (one.open = false)));
}
