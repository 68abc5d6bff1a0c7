// Renders openapi.json: one block per operation, with a form that sends the request.
const METHODS = ["get", "put", "post", "patch", "delete", "head"];

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

function resolve(api, schema) {
  if (!schema || !schema.$ref) return schema || {};
  return schema.$ref.slice(2).split("/").reduce((found, key) => found[key], api);
}

function example(api, given, depth = 0) {
  const schema = resolve(api, given);
  if (schema.example !== undefined) return schema.example;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  const choice = (schema.anyOf || schema.oneOf || schema.allOf || [])[0];
  if (choice) return example(api, choice, depth);
  if (schema.type === "object") {
    const names = depth > 3 ? [] : schema.required || [];
    return Object.fromEntries(names.map((n) => [n, example(api, schema.properties?.[n], depth + 1)]));
  }
  return { array: [], integer: 0, number: 0, boolean: false, string: "" }[schema.type] ?? null;
}

function typeOf(api, given) {
  const schema = resolve(api, given);
  const choices = schema.anyOf || schema.oneOf;
  if (choices) return choices.map((one) => typeOf(api, one)).join(" or ");
  return schema.type === "array" ? `list of ${typeOf(api, schema.items)}` : schema.type || "any";
}

function parameterRow(api, parameter) {
  const input = element("input", { name: parameter.name, required: !!parameter.required });
  input.dataset.place = parameter.in;
  return element("tr", {},
    element("td", {}, element("code", { textContent: parameter.name })),
    element("td", { textContent: `${typeOf(api, parameter.schema)}, ${parameter.in}` }),
    element("td", { textContent: parameter.description || parameter.schema?.description || "" }),
    element("td", {}, input));
}

function request(path, form) {
  const query = new URLSearchParams();
  const headers = {};
  for (const input of form.querySelectorAll("input[data-place]")) {
    if (!input.value) continue;
    if (input.dataset.place === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
    else if (input.dataset.place === "header") headers[input.name] = input.value;
    else for (const value of input.value.split(",")) query.append(input.name, value);
  }
  const body = form.querySelector("textarea")?.value || undefined;
  if (body) headers["Content-Type"] = "application/json";
  return [query.size ? `${path}?${query}` : path, { headers, body }];
}

function sender(path, method, operation) {
  if (operation["x-stream"]) return element("p", { textContent: "A stream: open it with curl -N or EventSource." });
  const shown = element("pre", { hidden: true });
  const button = element("button", { textContent: "Send" });
  const block = element("div", {}, button, shown);
  button.addEventListener("click", async (click) => {
    click.preventDefault();
    const [url, options] = request(path, block.closest("form"));
    const answer = await fetch(url, { ...options, method: method.toUpperCase() });
    const text = await answer.text();
    shown.hidden = false;
    shown.textContent = `${answer.status} ${answer.statusText}\n\n${pretty(text)}`;
  });
  return block;
}

function pretty(text) {
  try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text.slice(0, 20000); }
}

function operationBlock(api, path, method, operation) {
  const rows = (operation.parameters || []).map((parameter) => parameterRow(api, parameter));
  const form = element("form", {}, element("p", { textContent: operation.description || "" }));
  if (rows.length) form.append(element("table", {}, ...rows));
  const body = operation.requestBody?.content?.["application/json"];
  if (body) {
    const value = JSON.stringify(body.example ?? example(api, body.schema), null, 2);
    form.append(element("textarea", { value, spellcheck: false }));
  }
  form.append(sender(path, method, operation));
  const summary = element("summary", {},
    element("span", { className: "method", textContent: method.toUpperCase() }),
    element("code", { textContent: path }), ` ${operation.summary || ""}`);
  return element("details", {}, summary, form);
}

async function show() {
  const target = document.getElementById("operations");
  const answer = await fetch("/openapi.json");
  if (!answer.ok) { target.textContent = "Log in on the start page first."; return; }
  const api = await answer.json();
  const groups = new Map();
  for (const [path, item] of Object.entries(api.paths)) {
    for (const method of METHODS.filter((name) => item[name])) {
      const tag = item[method].tags?.[0] || "bus";
      if (!groups.has(tag)) groups.set(tag, element("section", {}, element("h2", { textContent: tag })));
      groups.get(tag).append(operationBlock(api, path, method, item[method]));
    }
  }
  target.replaceChildren(...groups.values());
  target.dataset.shown = "yes";
}

show();
