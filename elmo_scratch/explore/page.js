"use strict";
// Shows what page.py has computed. The place in the page's address, #ROW, says which token is
// shown, so that the browser's own buttons go back and forth. All text is set as text, never as HTML.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const AT_ONCE = 50; // sentences in the list
  const AROUND = matchMedia("(max-width: 48rem)").matches ? 6 : 10; // words on each side of a word in context
  const KINDS = {
    int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
    int32: Int32Array, uint32: Uint32Array,
  };
  const SHAPES = [ // around 0, 0: told apart without colour as well
    "M0-5a5 5 0 1 0 .01 0z", "M-4.5-4.5h9v9h-9z", "M0-6l5.5 10h-11z", "M0-6l5 6-5 6-5-6z",
    "M-2-6h4v4h4v4h-4v4h-4v-4h-4v-4h4z", "M0 6l5.5-10h-11z", "M-6-2l6-4 6 4-2.5 7h-7z",
  ];

  function unpacked([kind, text]) {
    const letters = atob(text), bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    return new KINDS[kind](bytes.buffer);
  }

  function element(name, attributes, ...children) {
    const made = name === "svg" || name === "path" || name === "title"
      ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key === "click") made.addEventListener("click", value);
      else if (value !== null) made.setAttribute(key, value);
    }
    made.append(...children);
    return made;
  }

  const $ = (id) => document.getElementById(id);
  const count = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

  // The words of each row, and what belongs to them.
  const numbers = unpacked(data.numbers);
  const words = [], sentenceOf = [], starts = [], formOf = [], forms = new Map();
  data.sentences.forEach((sentence, place) => {
    starts.push(words.length);
    for (const word of sentence ? sentence.split(" ") : []) {
      if (!forms.has(word)) forms.set(word, forms.size);
      formOf.push(forms.get(word));
      words.push(word);
      sentenceOf.push(place);
    }
  });
  starts.push(words.length);
  const layers = data.layers.map((layer) => ({
    ...layer, rows: unpacked(layer.rows), cosines: unpacked(layer.cosines),
    ...(layer.is_static ? {} : {
      pairs: unpacked(layer.pairs), points: unpacked(layer.points), shares: unpacked(layer.shares),
    }),
  }));
  const labels = data.labels && { names: data.labels.names, of: unpacked(data.labels.of) };

  // Where each group's rows, pairs and points begin.
  const ofForm = unpacked(data.groups.of_form), totals = unpacked(data.groups.totals);
  const groupRows = unpacked(data.groups.rows);
  const groups = [];
  let rowsSoFar = 0, pairsSoFar = 0, maps = 0, pointsSoFar = 0;
  unpacked(data.groups.sizes).forEach((size, number) => {
    const hasMap = size >= 3;
    groups.push({
      rows: Array.from(groupRows.subarray(rowsSoFar, rowsSoFar + size)), total: totals[number],
      pairs: pairsSoFar, map: hasMap ? maps : null, points: pointsSoFar,
    });
    rowsSoFar += size;
    pairsSoFar += size * (size - 1) / 2;
    if (hasMap) { maps += 1; pointsSoFar += 2 * size; }
  });

  function pairCosine(layer, group, one, other) {
    const [i, j] = one < other ? [one, other] : [other, one], n = group.rows.length;
    return layer.pairs[group.pairs + i * n - i * (i + 1) / 2 + j - i - 1] / data.steps.pair;
  }

  const lineName = (row) => `sentence ${numbers[sentenceOf[row]]}`;
  const labelOf = (row) => labels && labels.names[labels.of[sentenceOf[row]]];
  const OTHER = SHAPES.length; // the colour of labels that are not among the most frequent
  const colourOf = (row) => (labels ? Math.min(labels.of[sentenceOf[row]], OTHER) : 0);
  const className = (colour) => (colour < OTHER ? `label-${colour}` : "label-other");
  const shape = (colour) => SHAPES[colour % OTHER];

  function context(row) {
    const place = sentenceOf[row], first = Math.max(starts[place], row - AROUND);
    const end = Math.min(starts[place + 1], row + AROUND + 1);
    const before = words.slice(first, row).join(" "), after = words.slice(row + 1, end).join(" ");
    return element("span", { class: "context" },
      (first > starts[place] ? "… " : "") + before + (before ? " " : ""),
      element("mark", {}, words[row]),
      (after ? " " : "") + after + (end < starts[place + 1] ? " …" : ""));
  }

  const go = (row) => { location.hash = row; };

  function contextButton(row, ...before) {
    const label = labelOf(row);
    return element("button", {
      type: "button", class: "row", title: lineName(row), "data-row": row, click: () => go(row),
    }, ...before, element("span", { class: "said" }, context(row),
      ...(label === null ? [] : [" ", element("span", { class: "label" }, label)])));
  }

  // The list of sentences.
  let matches = data.sentences.map((_, place) => place), firstShown = 0, current = 0;

  function listSentences() {
    const shown = matches.slice(firstShown, firstShown + AT_ONCE);
    $("sentences").replaceChildren(...shown.map((place) => element("li", {},
      element("button", {
        type: "button", "aria-current": place === sentenceOf[current] ? "true" : null,
        click: () => go(starts[place]),
      },
      element("span", { class: "number" }, numbers[place]),
      element("span", { class: "text" }, data.sentences[place])))));
    $("found").textContent = !matches.length ? "No sentence has it."
      : `${firstShown + 1} to ${firstShown + shown.length} of ${count(matches.length, "sentence")}`;
    $("back").disabled = firstShown === 0;
    $("next").disabled = firstShown + AT_ONCE >= matches.length;
  }

  $("search").addEventListener("input", () => {
    const wanted = $("search").value.toLowerCase();
    matches = data.sentences.flatMap((text, place) => text.toLowerCase().includes(wanted) ? [place] : []);
    firstShown = 0;
    listSentences();
  });
  for (const [id, step] of [["back", -AT_ONCE], ["next", AT_ONCE]]) {
    $(id).addEventListener("click", () => {
      firstShown += step;
      listSentences();
      $("sentences").scrollTop = 0;
    });
  }

  // The chosen sentence and word.
  function showSentence() {
    const place = sentenceOf[current], label = labelOf(current);
    $("sentence-title").textContent =
      `Sentence ${numbers[place]}` + (label === null ? "" : `, labelled “${label}”`);
    const rows = Array.from({ length: starts[place + 1] - starts[place] }, (_, i) => starts[place] + i);
    $("sentence").replaceChildren(...rows.map((row) => element("button", {
      type: "button", "aria-pressed": String(row === current), "data-row": row,
      click: () => go(row),
    }, words[row])));
  }

  function showNeighbours() {
    $("word-title").textContent = `Nearest neighbours of “${words[current]}”`;
    $("neighbours").replaceChildren(...layers.map((layer) => {
      const start = layer.k * (layer.is_static ? formOf[current] : current);
      const items = Array.from({ length: layer.k }, (_, i) => {
        const row = layer.rows[start + i], cosine = layer.cosines[start + i] / data.steps.cosine;
        const filled = element("span", {});
        filled.style.width = `${100 * Math.max(0, cosine)}%`;
        return element("li", {}, contextButton(row,
          element("span", { class: "cosine" }, cosine.toFixed(3)),
          element("span", { class: "bar", "aria-hidden": "true" }, filled)));
      });
      return element("section", { class: layer.is_static ? "layer static" : "layer" },
        element("h3", {}, layer.name, " ", element("small", {},
          layer.is_static ? "other words, each where it comes first" : "tokens in their sentences")),
        items.length ? element("ol", {}, ...items) : element("p", {}, "There is no other token."));
    }).reverse()); // the highest layer comes first, the static one is the ground
  }

  // All occurrences of the word.
  function showMap(layer, group) {
    const share = layer.shares[group.map];
    const told = `${count(group.rows.length, "occurrence")} of “${words[current]}” in ${layer.name}, `
      + `on the two principal components of their vectors: ${share} % of the variance.`;
    const points = group.rows.map((row, i) => {
      const [x, y] = [0, 1].map((axis) => layer.points[group.points + 2 * i + axis] / data.steps.map);
      const sentence = element("title", {},
        `${lineName(row)}${labels ? `, ${labelOf(row)}` : ""}: ${context(row).textContent}`);
      return [row, element("path", {
        class: `point ${className(colourOf(row))}${row === current ? " here" : ""}`,
        d: shape(colourOf(row)), "data-row": row, click: () => go(row),
        transform: `translate(${150 + 105 * x} ${115 - 105 * y})${row === current ? " scale(1.5)" : ""}`,
      }, sentence)];
    });
    points.sort(([one], [other]) => (one === current) - (other === current)); // the shown one on top
    return element("figure", {},
      element("svg", { viewBox: "0 0 300 230", role: "img", "aria-label": `Map of ${told} `
        + "The list below has the same occurrences." }, ...points.map(([, point]) => point)),
      element("figcaption", {}, told[0].toUpperCase() + told.slice(1)));
  }

  function showLegend(group) {
    const found = new Map();
    if (labels) for (const row of group.rows) found.set(colourOf(row), (found.get(colourOf(row)) || 0) + 1);
    const ordered = [...found].sort(([one], [other]) => one - other);
    $("legend").replaceChildren(...ordered.map(([colour, times]) => element("li", {},
      element("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" },
        element("path", { class: `point ${className(colour)}`, d: shape(colour) })),
      `${colour < OTHER ? labels.names[colour] : "other labels"} (${times})`)));
  }

  function showPairs(group, contextual) {
    const here = group.rows.indexOf(current);
    const others = group.rows.map((_, i) => i).filter((i) => i !== here);
    const cosines = (i) => contextual.map((layer) => here < 0 ? NaN : pairCosine(layer, group, here, i));
    const ordered = others.map((i) => [i, cosines(i)]);
    if (here >= 0) ordered.sort(([, one], [, other]) => other[0] - one[0]);
    $("pairs").replaceChildren(element("table", {},
      element("thead", {}, element("tr", {}, ...[...contextual.map(({ name }) => name), "sentence"]
        .map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...ordered.map(([i, row]) => element("tr", {},
        ...row.map((cosine) => element("td", {}, isNaN(cosine) ? "–" : cosine.toFixed(2))),
        element("td", {}, contextButton(group.rows[i])))))));
  }

  function showOccurrences() {
    const number = ofForm[formOf[current]], contextual = layers.filter((layer) => !layer.is_static).reverse();
    $("occurrences").hidden = number < 0 || !contextual.length;
    if ($("occurrences").hidden) return;
    const group = groups[number], n = group.rows.length;
    $("occurrences-title").textContent = `Occurrences of “${words[current]}”`;
    $("occurrences-note").textContent = group.total === n
      ? `It occurs ${n} times.`
      : `It occurs ${count(group.total, "time")}; ${n} of them, at even distances, are compared`
        + (group.rows.includes(current) ? "." : ". The one above isn't among them.");
    showLegend(group);
    $("maps").replaceChildren(...(group.map === null ? [] : contextual.map((layer) => showMap(layer, group))));
    showPairs(group, contextual);
  }

  function show() {
    const wanted = Number(location.hash.slice(1));
    current = Number.isInteger(wanted) && wanted >= 0 && wanted < words.length ? wanted : 0;
    const place = matches.indexOf(sentenceOf[current]);
    if (place >= 0 && (place < firstShown || place >= firstShown + AT_ONCE)) {
      firstShown = place - place % AT_ONCE;
    }
    listSentences();
    showSentence();
    showNeighbours();
    showOccurrences();
  }

  addEventListener("hashchange", () => {
    show();
    // The button that was pressed is made anew: who uses a keyboard goes on from the word.
    $("sentence").querySelector(`[data-row="${current}"]`).focus({ preventScroll: true });
    $("sentence-title").scrollIntoView({ block: "nearest" });
  });
  if (words.length) show();
})();
