// The form of one question, made from its schema (G184 to G187). Text is only ever set as text.

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

/** The fields one combination of a schema asks for, its own and those of allOf together. */
function merged(schemas) {
  const found = { properties: {}, required: [] };
  for (const schema of schemas.filter(isObject)) {
    const inner = merged(Array.isArray(schema.allOf) ? schema.allOf : []);
    for (const part of [inner, schema]) {
      for (const [name, rule] of Object.entries(part.properties ?? {})) {
        found.properties[name] = { ...found.properties[name], ...(isObject(rule) ? rule : {}) };
      }
      for (const name of part.required ?? []) {
        if (!found.required.includes(name)) found.required.push(name);
      }
    }
  }
  return found;
}

/** Every anyOf of a schema, its own and those inside allOf. */
function choices(schema) {
  if (!isObject(schema)) return [];
  const own = Array.isArray(schema.anyOf) ? [schema.anyOf] : [];
  return [...own, ...(Array.isArray(schema.allOf) ? schema.allOf : []).flatMap(choices)];
}

function only(rule) {
  if (Object.hasOwn(rule, "const")) return [rule.const];
  return Array.isArray(rule.enum) && rule.enum.length === 1 ? [rule.enum[0]] : null;
}

function named(option, number) {
  if (isObject(option) && typeof option.title === "string" && option.title) return option.title;
  const { properties, required } = merged([option]);
  const fixed = Object.entries(properties)
    .filter(([, rule]) => only(rule))
    .map(([name, rule]) => `${name}: ${JSON.stringify(only(rule)[0])}`);
  const open = required.filter((name) => !only(properties[name] ?? {}));
  return [...open, ...fixed].join(", ") || `option ${number}`;
}

/** Several anyOf make every combination of one option each. */
function combinations(lists) {
  let found = [{ options: [], names: [] }];
  for (const list of lists) {
    found = found.flatMap((one) =>
      list.map((option, index) => ({
        options: [...one.options, option],
        names: [...one.names, named(option, index + 1)],
      })),
    );
  }
  return found;
}

function typed(rule, text) {
  if (rule.type === undefined || rule.type === "object") {
    if (!text.trim()) return rule.type === undefined && rule.enum ? text : {};
    if (rule.type === undefined) return text;
  }
  if (rule.type === "string") return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** The texts a rule offers, and whether another one fits as well; null when it offers none. */
function offered(rule) {
  if (!isObject(rule) || rule.type !== "string") return null;
  if (Array.isArray(rule.enum)) return { values: rule.enum, other: false };
  const [listed, any] = Array.isArray(rule.anyOf) ? rule.anyOf : [];
  return Array.isArray(listed?.enum) && any?.type === "string" ? { values: listed.enum, other: true } : null;
}

/** Several of the offered texts, and one more where another fits. */
function several(id, name, label, { values, other }) {
  const group = element("fieldset", { class: "field" }, element("legend", { class: "label" }, label));
  const ticks = values.map((value, index) => {
    const tick = element("input", { type: "checkbox", id: `${id}-${index}` });
    group.append(element("label", { for: tick.id }, tick, ` ${value}`));
    return tick;
  });
  const text = element("input", { type: "text", autocomplete: "off", "aria-label": `Another, for ${label}` });
  if (other) group.append(text);
  const read = () => {
    const ticked = values.filter((_, index) => ticks[index].checked);
    const written = text.value.trim();
    return written && !ticked.includes(written) ? [...ticked, written] : ticked;
  };
  return { name, read, node: group };
}

function field(id, name, rule) {
  const label = rule.description ?? rule.title ?? (name === "prompt" ? "Your decision" : name);
  const many = rule.type === "array" ? offered(rule.items) : null;
  if (many) return several(id, name, String(label), many);
  let control;
  if (Array.isArray(rule.enum)) {
    control = element("select", { id });
    for (const value of rule.enum) {
      control.append(element("option", { value: JSON.stringify(value) }, typeof value === "string" ? value : JSON.stringify(value)));
    }
  } else if (rule.type === "boolean") {
    control = element("select", { id });
    control.append(element("option", { value: "true" }, "Yes"), element("option", { value: "false" }, "No"));
  } else {
    control = name === "prompt" || rule.type === "object" || rule.type === "array"
      ? element("textarea", { id, rows: "4" })
      : element("input", { id, type: "text", autocomplete: "off" });
  }
  const hints = offered(rule)?.other ? element("datalist", { id: `${id}-list` }) : "";
  if (hints) {
    hints.append(...offered(rule).values.map((value) => element("option", { value })));
    control.setAttribute("list", hints.id);
  }
  const read = () => {
    if (Array.isArray(rule.enum) || rule.type === "boolean") return JSON.parse(control.value);
    return typed(rule, control.value);
  };
  return { name, read, node: element("div", { class: "field" }, element("label", { class: "label", for: id }, String(label)), control, hints) };
}

function fieldsOf(id, schema, options) {
  const { properties, required } = merged([schema, ...options]);
  const fields = [];
  const given = {};
  for (const [index, name] of required.entries()) {
    const rule = properties[name] ?? {};
    const fixed = only(rule);
    if (fixed) given[name] = fixed[0];
    else fields.push(field(`${id}-${index}`, name, rule));
  }
  // A question that may be left out has a title of its own; blank, it is not sent.
  for (const [index, [name, rule]] of Object.entries(properties).entries()) {
    if (required.includes(name) || !rule.title || options.length) continue;
    const made = field(`${id}-more-${index}`, name, Array.isArray(rule.enum) ? { type: "string", title: rule.title, anyOf: [{ enum: rule.enum }, { type: "string" }] } : rule);
    fields.push({ ...made, optional: true });
  }
  return { fields, given, isApproval: required.length === 1 && required[0] === "approved" && !options.length };
}

/** Build the form; `send(response)` is called with what was entered. */
export function formOf(id, schema, send) {
  const form = element("form", { novalidate: "" });
  const body = element("div", { class: "stack" });
  const lists = choices(schema);
  const found = combinations(lists);

  function show(options) {
    const { fields, given, isApproval } = fieldsOf(id, schema, options);
    body.replaceChildren();
    if (isApproval) {
      const note = element("textarea", { id: `${id}-note`, rows: "2", "aria-label": "Note" });
      const say = (approved) => {
        const words = note.value.trim() ? { note: note.value } : {};
        send({ approved, ...words });
      };
      const yes = element("button", { type: "button", class: "button button-main" }, "Yes");
      const no = element("button", { type: "button", class: "button" }, "No");
      yes.addEventListener("click", () => say(true));
      no.addEventListener("click", () => say(false));
      body.append(note, element("div", { class: "form-bar" }, yes, no));
      form.onsubmit = (event) => event.preventDefault();
      return;
    }
    const button = element("button", { type: "submit", class: "button button-main" }, "Send");
    body.append(...fields.map((one) => one.node), element("div", { class: "form-bar" }, button));
    form.onsubmit = (event) => {
      event.preventDefault();
      const response = { ...given };
      for (const one of fields) {
        const value = one.read();
        if (!one.optional || value.length) response[one.name] = value;
      }
      send(response);
    };
  }

  if (lists.length) {
    const pick = element("select", { id: `${id}-which` });
    for (const [index, one] of found.entries()) pick.append(element("option", { value: String(index) }, one.names.join("; ")));
    pick.addEventListener("change", () => show(found[Number(pick.value)].options));
    form.append(element("div", { class: "field" }, element("label", { class: "label", for: pick.id }, "Which answer"), pick));
  }
  form.append(body);
  show(found[0].options);
  return form;
}
