import assert from "node:assert/strict";
import fs from "node:fs";
import { describe, it } from "node:test";
import { TEMPLATE_CHARACTERS, Template } from "./template.ts";

interface Reference {
  readonly variables: Record<string, unknown>;
  /** `text`: what transformers writes; null where it raises an error. */
  readonly constructs: readonly { readonly template: string; readonly text: string | null }[];
  readonly chats: readonly (readonly { readonly role: string; readonly content: string }[])[];
  /** `texts`: of each chat. */
  readonly families: readonly {
    readonly name: string;
    readonly template: string;
    readonly texts: readonly (string | null)[];
  }[];
}
const file = new URL("../../../../test/fixtures/templates/templates.json", import.meta.url);
const reference = JSON.parse(fs.readFileSync(file, "utf8")) as Reference;
const render = (template: string, variables: Record<string, unknown> = {}) => new Template(template).render(variables);

describe("a template", () => {
  for (const { template, text } of reference.constructs)
    it(`${text === null ? "fails" : "has the text"} of transformers: ${JSON.stringify(template).slice(0, 80)}`, () => {
      if (text === null) assert.throws(() => render(template, reference.variables));
      else assert.equal(render(template, reference.variables), text);
    });

  for (const { name, template, texts } of reference.families)
    it(`with the constructs of ${name} writes chats as transformers does`, () => {
      for (const [index, messages] of reference.chats.entries()) {
        const add_generation_prompt = messages.at(-1)!.role === "user";
        const tokens = { bos_token: "<s>", eos_token: "</s>", tools: null, documents: null };
        const written = () => render(template, { ...tokens, messages, add_generation_prompt });
        if (texts[index] === null) assert.throws(written);
        else assert.equal(written(), texts[index]);
      }
    });

  for (const [what, template] of [
    ["arguments of tests", "{{ 3 is divisibleby(3) }}"],
    ["with", "{% with a = 1 %}{{ a }}{% endwith %}"],
    ["numbers with an exponent", "{{ 1e5 }}"],
    ["other keys than text", "{{ {1: 2} }}"],
    ["fields with a format", "{{ '{:>5}'.format(1) }}"],
    ["integers that a double does not hold", "{{ 2 ** 53 + 1 }}"],
    ["codes of strftime that it does not know", "{{ strftime_now('%j') }}"],
  ] as const)
    it(`is refused rather than written wrongly: ${what}`, () => assert.throws(() => render(template)));

  it("knows today's date", () => {
    assert.match(render("{{ strftime_now('%d %b %Y, %H:%M') }}"), /^\d\d [A-Z][a-z]{2} \d{4}, \d\d:\d\d$/);
  });

  it("leaves the template of one rendering to the next", () => {
    const template = new Template("{% set ns = namespace(n=0) %}{% set ns.n = ns.n + 1 %}{{ ns.n }}{% set x = 1 %}");
    assert.equal(template.render({}), "1");
    assert.equal(template.render({}), "1");
  });
});

describe("a template without end", () => {
  const all = "range(100000)";
  for (const [what, template] of [
    ["nested loops", `{% for i in ${all} %}{% for j in ${all} %}{% set x = j %}{% endfor %}{% endfor %}`],
    ["nested loops without a body", `{% for i in ${all} %}{% for j in ${all} %}{% endfor %}{% endfor %}`],
    ["loops that end at once", `{% for i in ${all} %}{% for j in ${all} %}{% break %}{% endfor %}{% endfor %}`],
    ["loops that choose nothing", `{% for i in ${all} %}{% for j in ${all} if false %}{% endfor %}{% endfor %}`],
    ["a list made in a loop", `{% for i in ${all} %}{% set x = ${all} | list %}{% endfor %}`],
    ["a search in a loop", `{% set x = ${all} %}{% for i in ${all} %}{% set y = -1 in x %}{% endfor %}`],
    ["a slice in a loop", `{% set x = ${all} %}{% for i in ${all} %}{% set y = x[1:] %}{% endfor %}`],
    ["a comparison in a loop", `{% set x = ${all} %}{% for i in ${all} %}{% set y = x == x[:] %}{% endfor %}`],
    [
      "text that doubles",
      `{% set ns = namespace(x='abcdefgh') %}{% for i in ${all} %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
    ],
    [
      "a list that doubles",
      `{% set ns = namespace(x=[1]) %}{% for i in ${all} %}{% set ns.x = ns.x + ns.x %}{% endfor %}`,
    ],
    [
      "a list of lists that doubles",
      `{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x | tojson }}`,
    ],
    [
      "a comparison of lists that double",
      "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}" +
        "{% set ns.y = [ns.y, ns.y] %}{% endfor %}{{ ns.x == ns.y }}",
    ],
    [
      "a comparison of two lists in a loop",
      `{% set x = ${all} %}{% set y = x[:] %}{% for i in x %}{{ x == y }}{% endfor %}`,
    ],
    ...["{{ ns.x is lower }}", "{{ '{x}'.format(x=ns.x) }}", "{{ '%(x)s' | format(x=ns.x) }}"].map(
      (use) =>
        [
          `a list of lists in ${use}`,
          `{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}${use}`,
        ] as const,
    ),
    ["a macro that calls itself", "{% macro f() %}{{ f() }}{{ f() }}{% endmacro %}{{ f() }}"],
    ["long text", "{{ 'x' * 1000000000 }}"],
    ["a wide column", "{{ 'x'.center(1000000000) }}{{ '%1000000000d' % 1 }}"],
    ["a wide margin", "{{ 'x'|indent(1000000000, true) }}"],
    ["replaced text", "{% set x = 'x' * 1000000 %}{{ x.replace('x', x) }}"],
    ["joined text", `{% set x = 'x' * 1000000 %}{{ ${all} | join(x) }}`],
    ["a long range", "{{ range(1000000000) }}"],
  ] as const)
    it(`stops within seconds: ${what}`, { timeout: 20_000 }, () => {
      const started = performance.now();
      const steps = what === "nested loops" ? undefined : 100_000;
      assert.throws(() => new Template(template).render({}, { steps }), {
        message: /steps|at most|call stack|string length/,
      });
      assert.ok(performance.now() - started < 15_000);
    });

  it("is refused while it is read, if reading it takes long", () => {
    assert.throws(() => new Template(" ".repeat(20_000)), /more than 10000 characters of white space/);
    assert.throws(() => new Template("x".repeat(TEMPLATE_CHARACTERS + 1)), /200001 characters; at most 200000/);
  });

  it("has steps enough for a chat of thousands of messages", () => {
    const { template } = reference.families.find(({ name }) => name === "Qwen3")!;
    const messages = Array.from({ length: 2000 }, (_, i) => ({
      role: i % 2 ? "assistant" : "user",
      content: "x ".repeat(500),
    }));
    assert.ok(render(template, { messages }).length > 2_000_000);
  });
});
