import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { Ajv } from "ajv";
import { parse } from "yaml";
import { crdTemplate, describeSchema, readValues, rulesTemplates, type ValueSchema } from "./generate.ts";

const schema: ValueSchema = {
  type: "object",
  properties: {
    first: { type: "string" },
    group: { type: "object", properties: { inner: { type: "integer", minimum: 1 } } },
    whole: { type: "object", $comment: "one value", properties: { a: { type: "string" } } },
  },
};
const YAML = `# Head of the file.

# What it is,
# on two lines.
first: x
group:
  # How many | at once.
  inner: 3
# One value.
whole: { a: b }
`;

describe("The generator of the chart's values", () => {
  test("Each value gets its path, default and comment", () => {
    const found = readValues(YAML, schema).map(({ path, byDefault, meaning }) => [path, byDefault, meaning]);
    assert.deepEqual(found, [
      ["first", "x", "What it is, on two lines."],
      ["group.inner", 3, "How many | at once."],
      ["whole", { a: "b" }, "One value."],
    ]);
  });

  const REFUSED: [what: string, yaml: string, message: RegExp][] = [
    ["no comment", YAML.replace("  # How many | at once.\n", ""), /group\.inner has no comment/],
    ["not in the schema", `${YAML}# New.\nother: 1\n`, /values\.schema\.json has no other/],
    ["not in values.yaml", YAML.replace(/# One value[\s\S]*/, ""), /values\.yaml has no whole/],
  ];
  for (const [what, yaml, message] of REFUSED)
    test(`The generator refuses ${what}`, () => assert.throws(() => readValues(yaml, schema), message));

  test("The schema gets comments and defaults; a second pass changes nothing", () => {
    const values = readValues(YAML, schema);
    const described = describeSchema(schema, values);
    assert.deepEqual(described.properties?.group?.properties?.inner, {
      ...{ description: "How many | at once.", type: "integer", minimum: 1, default: 3 },
    });
    assert.deepEqual(describeSchema(described, readValues(YAML.replace("at once", "in all"), described)), {
      ...describeSchema(schema, readValues(YAML.replace("at once", "in all"), schema)),
    });
  });
});

test("The CRD's template has the CRD with a switch, labels and the annotation that keeps it", () => {
  const template = crdTemplate("# For the source's readers.\napiVersion: v1\nmetadata:\n  name: x\nspec: {}\n");
  assert.match(
    template,
    /\{\{- if \.Values\.crds\.enabled \}\}\napiVersion: v1\nmetadata:\n {2}labels: [\s\S]*keep[\s\S]*nindent 2 \. \}\}\{\{ end \}\}\n {2}name: x\nspec: \{\}\n\{\{- end \}\}\n$/,
  );
  assert.throws(() => crdTemplate("metadata:\n  name: '{{'"), /has \{\{ in it/);
});

test("the roles' rules become named templates", () => {
  const roles = "kind: Role\nrules:\n  - verbs: [get]\n---\nkind: Role\nrules:\n  - verbs: [list]\n---\nother\n";
  const text = rulesTemplates("role.yaml", roles, ["a", "b"]);
  assert.match(
    text,
    /define "a" -\}\}\n- verbs: \[get\]\n\{\{- end[\s\S]*define "b" -\}\}\n- verbs: \[list\]\n\{\{- end/,
  );
  assert.throws(() => rulesTemplates("role.yaml", roles, ["a"]), /role\.yaml has 2 roles, not 1/);
});

describe("values.schema.json", () => {
  const read = (file: string) => readFileSync(new URL(`longrun/${file}`, import.meta.url), "utf8");
  const validate = new Ajv({ strict: false, allErrors: true }).compile(JSON.parse(read("values.schema.json")));
  const problems = (change: object) => {
    const merge = (base: Record<string, unknown>, over: Record<string, unknown>): Record<string, unknown> =>
      Object.fromEntries(
        Object.entries({ ...base, ...over }).map(([key, value]) => [
          key,
          key in over && key in base && value !== null && typeof value === "object" && !Array.isArray(value)
            ? merge(base[key] as never, value as never)
            : value,
        ]),
      );
    return validate(merge(parse(read("values.yaml")), change as never))
      ? []
      : validate.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`);
  };

  test("The schema accepts the defaults", () => assert.deepEqual(problems({}), []));

  const TAKEN: object[] = [
    { images: { controller: { digest: `sha256:${"0".repeat(64)}` }, registry: "localhost:5000" } },
    { images: { sandbox: { repository: "registry.example.com:5000/a/b_c.d" } } },
    { runs: { learner: { resources: { limits: { cpu: 2, memory: "8Gi", "nvidia.com/gpu": 1 } } } } },
    { podDisruptionBudget: { maxUnavailable: "25%" }, global: { anything: true } },
  ];
  for (const change of TAKEN) test(`takes ${JSON.stringify(change)}`, () => assert.deepEqual(problems(change), []));

  const REFUSED: [change: object, problem: RegExp][] = [
    [{ replicas: 3 }, /must NOT have additional properties/],
    [{ controller: { replica: 3 } }, /^\/controller must NOT have additional properties/],
    [{ controller: { replicas: "3" } }, /^\/controller\/replicas must be integer/],
    [{ controller: { replicas: -1 } }, /^\/controller\/replicas must be >= 0/],
    [{ controller: { logLevel: "loud" } }, /^\/controller\/logLevel must be equal to one of/],
    [{ controller: { resources: { limit: {} } } }, /^\/controller\/resources must NOT have additional/],
    [
      { controller: { resources: { limits: { memory: "1 GB" } } } },
      /^\/controller\/resources\/limits\/memory must match/,
    ],
    [{ images: { controller: { digest: "latest" } } }, /^\/images\/controller\/digest must match/],
    [{ images: { controller: { repository: "a:b@c" } } }, /^\/images\/controller\/repository must match/],
    [{ images: { pullPolicy: "Sometimes" } }, /^\/images\/pullPolicy must be equal/],
    [{ watch: { scope: "all" } }, /^\/watch\/scope must be equal/],
    [{ watch: { namespaces: ["Team"] } }, /^\/watch\/namespaces\/0 must match/],
    [{ podSecurity: { enforce: "strict" } }, /^\/podSecurity\/enforce must be equal/],
    [{ commonAnnotations: { "k8s.v1.cni.cncf.io/networks": "x" } }, /^\/commonAnnotations .*(NOT be valid|propert)/],
    [
      { commonAnnotations: { "container.apparmor.security.beta.kubernetes.io/learner": "unconfined" } },
      /^\/commonAnnotations /,
    ],
    [{ commonLabels: { team: "x".repeat(64) } }, /^\/commonLabels/],
    [{ commonLabels: { "app.kubernetes.io/name": "x" } }, /^\/commonLabels .*(NOT be valid|propert)/],
    [{ controller: { tolerations: [{ operator: "In" }] } }, /^\/controller\/tolerations\/0\/operator must be equal/],
    [{ gpu: { resourceName: "gpu" } }, /^\/gpu\/resourceName must match/],
    [{ metrics: { podMonitor: { interval: "30" } } }, /^\/metrics\/podMonitor\/interval must match/],
    [{ podDisruptionBudget: { maxUnavailable: "half" } }, /^\/podDisruptionBudget\/maxUnavailable must match/],
    [{ networkPolicy: { apiServerPorts: [] } }, /^\/networkPolicy\/apiServerPorts must NOT have fewer/],
    [{ networkPolicy: { webhookPorts: [0] } }, /^\/networkPolicy\/webhookPorts\/0 must be >= 1/],
    [{ proxy: { https: "proxy.example.com:3128" } }, /^\/proxy\/https must match/],
    [{ proxy: { noProxy: ["10.0.0.0/8"] } }, /^\/proxy\/noProxy\/0 must match/],
    [{ test: { timeoutSeconds: 0 } }, /^\/test\/timeoutSeconds must be >= 1/],
  ];
  for (const [change, problem] of REFUSED)
    test(`The schema refuses ${JSON.stringify(change)}`, () =>
      assert.ok(
        problems(change).some((text) => problem.test(text)),
        problems(change).join("; "),
      ));
});
