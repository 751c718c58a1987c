/** `longrun model fetch s3://…` with a real server of S3, with cut connections and kills. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import fs from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import path from "node:path";
import type { Duplex } from "node:stream";
import { after, before, describe, test } from "node:test";
import { S3_KEYS } from "../cluster/s3-server.ts";
import {
  command,
  cutting,
  fetchFrom,
  fresh,
  MiB,
  MODEL_COMMAND,
  POLICY,
  put,
  putParts,
  putPolicy,
  root,
  skip,
  useServer,
} from "./s3.fixture.ts";

describe("A fetch from S3", { skip }, () => {
  useServer();

  test("A fetch brings what training needs, verified by the hashes of parts too; a second fetch needs no network", async () => {
    const readme = randomBytes(11 * MiB + 7);
    await putPolicy("team/policy", { "pytorch_model.bin": "x", "original/model.safetensors": "x" });
    await putParts("models", "team/policy/README.md", readme, 5 * MiB);
    const out = fresh();
    const { folder, commit, bytes, fetchedBytes } = await fetchFrom("s3://models/team/policy", out);
    assert.equal(folder, out);
    assert.equal(fetchedBytes, bytes);
    assert.ok(fs.readFileSync(path.join(out, "README.md")).equals(readme));
    for (const name of ["model.safetensors", "config.json", "tokenizer.json"])
      assert.ok(fs.readFileSync(path.join(out, name)).equals(fs.readFileSync(path.join(POLICY, name))), name);
    assert.ok(!fs.existsSync(path.join(out, "pytorch_model.bin")) && !fs.existsSync(path.join(out, "original")));
    const record = JSON.parse(fs.readFileSync(path.join(out, "fetched.json"), "utf8"));
    assert.deepEqual([record.repo, record.commit, record.complete], ["s3://models/team/policy", commit, true]);
    const of = (name: string) => record.files.find((file: { name: string }) => file.name === name);
    assert.equal(of("README.md").algorithm, "md5-parts");
    assert.match(of("README.md").hash, /-3$/);
    assert.equal(of("config.json").algorithm, "md5");
    const again = await fetchFrom("s3://models/team/policy", out, { AWS_ENDPOINT_URL_S3: "http://127.0.0.1:1" });
    assert.equal(again.fetchedBytes, 0);
  });

  test("A fetch over a connection that breaks again and again keeps each byte once", async () => {
    await putPolicy("cut");
    const out = fresh();
    {
      using proxy = await cutting("down", 2_000_000);
      await assert.rejects(fetchFrom("s3://models/cut", out, proxy.env, { tries: 2 }), { code: "network" });
    }
    const part = fs.readdirSync(out).find((name) => /^model\.safetensors\.[0-9a-f]{12}\.part$/.test(name))!;
    const { size } = fs.statSync(path.join(out, part));
    assert.ok(size > 0 && size < 2_000_000, `${size}`);
    const { fetchedBytes } = await fetchFrom("s3://models/cut", out);
    const weights = fs.statSync(path.join(POLICY, "model.safetensors")).size;
    assert.ok(fetchedBytes <= weights + 100_000 - size, `${fetchedBytes} of ${weights}, ${size} were there`);
    const fetched = fs.readFileSync(path.join(out, "model.safetensors"));
    assert.ok(fetched.equals(fs.readFileSync(path.join(POLICY, "model.safetensors"))));
  });

  test("The fetch records hashes that equal SHA256SUMS, and refuses a wrong one", async () => {
    const sums = (name: string, content = fs.readFileSync(path.join(POLICY, name))) =>
      `${createHash("sha256").update(content).digest("hex")}  ${name}\n`;
    await putPolicy("sums", { SHA256SUMS: sums("model.safetensors") + sums("config.json") });
    const { folder } = await fetchFrom("s3://models/sums", fresh());
    const { files } = JSON.parse(fs.readFileSync(path.join(folder, "fetched.json"), "utf8"));
    const kinds = Object.fromEntries(
      files.map((file: { name: string; algorithm: string }) => [file.name, file.algorithm]),
    );
    assert.deepEqual([kinds["model.safetensors"], kinds["tokenizer.json"]], ["sha256", "md5"]);
    await put("models", "sums/SHA256SUMS", sums("model.safetensors", Buffer.from("another")));
    await assert.rejects(fetchFrom("s3://models/sums", fresh()), {
      code: "hash",
      message: /model\.safetensors .* another hash/,
    });
  });

  test("A model that was replaced during its fetch is fetched anew", async () => {
    await putPolicy("replaced");
    const out = fresh();
    {
      using proxy = await cutting("down", 2_000_000);
      await assert.rejects(fetchFrom("s3://models/replaced", out, proxy.env, { tries: 1 }));
    }
    await put("models", "replaced/README.md", "another");
    const { lines } = await fetchFrom("s3://models/replaced", out);
    assert.equal(fs.readFileSync(path.join(out, "README.md"), "utf8"), "another");
    assert.match(lines.join("\n"), /s3:\/\/models\/replaced is another one than .* was begun with/);
  });

  const refusals: [what: string, url: string, env: NodeJS.ProcessEnv, code: string, message: RegExp][] = [
    [
      "no such bucket",
      "s3://nothing/here",
      {},
      "input",
      /has no bucket nothing; check the name and AWS_ENDPOINT_URL_S3$/,
    ],
    [
      "nothing there",
      "s3://models/none",
      {},
      "input",
      /^there is nothing in s3:\/\/models\/none\/; give the folder with/,
    ],
    ["no place", "s3://Models/a/../b", {}, "input", /^s3:\/\/Models\/a\/\.\.\/b is no place in S3; give s3:\/\/BUCKET/],
    [
      "a wrong secret",
      "s3://models/cut",
      { AWS_SECRET_ACCESS_KEY: "x" },
      "access",
      /refuses s3:\/\/models: 403 Sig.*; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN$/,
    ],
    [
      "a session that is over or wrong",
      "s3://models/cut",
      { AWS_SESSION_TOKEN: "x" },
      "access",
      /refuses s3:\/\/models: 400 InvalidToken .*; check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN$/,
    ],
    [
      "no credentials",
      "s3://models/cut",
      { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "" },
      "access",
      /refuses s3:\/\/models: 403 .*; no credentials were found: set AWS_ACCESS_KEY_ID/,
    ],
  ];
  for (const [what, url, env, code, message] of refusals)
    test(`The fetch refuses ${what} in one line, at once`, async () => {
      await assert.rejects(fetchFrom(url, fresh(), env), (error: Error & { code: string }) => {
        assert.equal(error.code, code, error.message);
        assert.match(error.message, message);
        return true;
      });
    });

  test("An error names a proxy that refuses, or a server that is not S3, in one line", async () => {
    const refuse = (_: unknown, socket: Duplex) => socket.on("error", () => {}).end("HTTP/1.1 407 no\r\n\r\n");
    const proxy = createHttpServer((_, response) => void response.writeHead(403).end("no entry")).on("connect", refuse);
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const address = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const through = { HTTP_PROXY: address.replace("//", "//me:secret@"), HTTPS_PROXY: address, NO_PROXY: "" };
    const endpoint = (url: string) => ({ AWS_ENDPOINT_URL_S3: url, ...through });
    try {
      await assert.rejects(fetchFrom("s3://models/cut", fresh(), endpoint("https://s3.test")), {
        message: `the proxy ${address} (HTTPS_PROXY) wants a name and password; write it as http://NAME:PASSWORD@HOST:PORT`,
      });
      await assert.rejects(fetchFrom("s3://models/cut", fresh(), endpoint("http://s3.test")), {
        message: `http://s3.test, or the proxy ${address} (HTTP_PROXY) before it, answers 403 and not as S3 does; check both addresses`,
      });
    } finally {
      proxy.close().closeAllConnections();
    }
  });

  describe("a workload identity", () => {
    const { AWS_ACCESS_KEY_ID: id, AWS_SECRET_ACCESS_KEY: secret } = S3_KEYS;
    let denies = false;
    /** Stands for AWS's STS (POST) and for the agent of EKS (GET). */
    const identities = createHttpServer((request, response) => {
      const refused = `<ErrorResponse><Error><Code>AccessDenied</Code><Message>Not authorized</Message></Error></ErrorResponse>`;
      const keys = `<AccessKeyId>${id}</AccessKeyId><SecretAccessKey>${secret}</SecretAccessKey><SessionToken></SessionToken>`;
      const given = `<Credentials>${keys}<Expiration>2040-01-01T00:00:00Z</Expiration></Credentials>`;
      const result = `<AssumeRoleWithWebIdentityResult>${given}</AssumeRoleWithWebIdentityResult>`;
      const xml = `<AssumeRoleWithWebIdentityResponse>${result}</AssumeRoleWithWebIdentityResponse>`;
      const json = { AccessKeyId: id, SecretAccessKey: secret, Token: "", Expiration: "2040-01-01T00:00:00Z" };
      response.writeHead(denies ? 403 : 200);
      if (request.method === "POST") response.end(denies ? refused : xml);
      else response.end(denies ? "{}" : JSON.stringify(json));
    });
    const token = path.join(root, "token");
    const variables = () => {
      const url = `http://127.0.0.1:${(identities.address() as AddressInfo).port}`;
      const role = "arn:aws:iam::1:role/r";
      return {
        sts: { AWS_ROLE_ARN: role, AWS_WEB_IDENTITY_TOKEN_FILE: token, AWS_ENDPOINT_URL_STS: url },
        agent: { AWS_CONTAINER_CREDENTIALS_FULL_URI: url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: token },
      };
    };
    /** Fetches without keys; the library reads the process' own environment. */
    async function fetchAs(given: NodeJS.ProcessEnv): Promise<string> {
      const none = { AWS_ACCESS_KEY_ID: "", AWS_SECRET_ACCESS_KEY: "" };
      Object.assign(process.env, given);
      try {
        await fetchFrom("s3://models/cut", fresh(), { ...none, ...given }, { tries: 2 });
        return "fetched";
      } catch (error) {
        return `${(error as { code?: string }).code}: ${(error as Error).message}`;
      } finally {
        for (const name of Object.keys(given)) delete process.env[name];
      }
    }
    before(async () => {
      fs.writeFileSync(token, "a token");
      await new Promise<void>((resolve) => identities.listen(0, "127.0.0.1", resolve));
    });
    after(() => identities.close().closeAllConnections());

    test("gives the credentials, by STS and by the agent of a node", async () => {
      const { sts, agent } = variables();
      for (const each of [sts, agent]) assert.equal(await fetchAs(each), "fetched");
    });

    test("that gives none is named with the reason, and nothing is asked without credentials", async () => {
      const { sts, agent } = variables();
      const remedy = "check the role, and that it trusts this service account";
      const named = "the workload identity (AWS_WEB_IDENTITY_TOKEN_FILE";
      denies = true;
      assert.equal(
        await fetchAs(sts),
        `access: ${named} ${token}, AWS_ROLE_ARN ${sts.AWS_ROLE_ARN}) gives no credentials: 403 AccessDenied (Not authorized); ${remedy}`,
      );
      assert.match(
        await fetchAs(agent),
        /^network: the workload identity \(AWS_CONTAINER_CREDENTIALS_FULL_URI http:\S+\) gives no credentials: .*; check the role/,
      );
      const file = path.join(root, "no token");
      assert.match(
        await fetchAs({ ...sts, AWS_WEB_IDENTITY_TOKEN_FILE: file }),
        /^access: the workload identity \(AWS_WEB_IDENTITY_TOKEN_FILE .*no token, .* gives no credentials: ENOENT/,
      );
      assert.match(
        await fetchAs({ ...sts, AWS_ENDPOINT_URL_STS: "http://127.0.0.1:1" }),
        /^network: the workload identity .* gives no credentials: connect ECONNREFUSED 127.0.0.1:1; check the role/,
      );
    });
  });

  test("The command takes s3:// and its environment, and refuses a revision", async () => {
    const out = fresh();
    const { status, stdout, stderr } = await command(MODEL_COMMAND, ["fetch", "s3://models/cut", "--out", out]);
    assert.deepEqual([status, stdout], [0, `${out}\n`], stderr);
    const refused = await command(MODEL_COMMAND, ["fetch", "s3://models/cut", "--revision", "main"]);
    assert.deepEqual(
      [refused.status, refused.stderr],
      [2, "--revision is main, and s3://models/cut has no revisions; leave it out\n"],
    );
  });

  /** A run folder with one checkpoint, of a file that takes several parts. */
});
