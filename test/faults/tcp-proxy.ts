/**
 * A proxy of bytes, below TLS: its client still checks the real server's certificate. It causes faults of connections, not of requests:
 * half-open ones, resets in the middle of a frame, a link that carries a few bytes at a time.
 */
import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";

export class TcpProxy {
  /** Number of accepted connections. */
  accepted = 0;
  /** Accepts new connections, and never answers. */
  mute = false;
  /** Largest piece in which the server's data are passed on. */
  pieceBytes = Number.POSITIVE_INFINITY;
  /** Resets a connection after this many more bytes from the server. */
  resetAfterBytes = Number.POSITIVE_INFINITY;
  readonly #server: Server;
  readonly #pairs = new Map<Socket, Socket>();
  readonly #frozen = new Set<Socket>();

  /** `target`: URL of the server. */
  static async start(target: string): Promise<TcpProxy> {
    const proxy = new TcpProxy(new URL(target));
    proxy.#server.listen(0, "127.0.0.1");
    await once(proxy.#server, "listening");
    return proxy;
  }

  private constructor({ hostname, port }: URL) {
    this.#server = createServer({ noDelay: true }, (client) => {
      this.accepted += 1;
      client.on("error", () => {});
      if (this.mute) {
        this.#frozen.add(client);
        return;
      }
      const server = connect({ host: hostname, port: Number(port), noDelay: true });
      this.#pairs.set(client, server);
      client.on("data", (bytes) => this.#frozen.has(client) || server.write(bytes));
      server.on("data", (bytes) => this.#passBack(bytes, client));
      client.on("close", () => {
        this.#pairs.delete(client);
        this.#frozen.delete(client);
        server.destroy();
      });
      server.on("error", () => client.destroy());
      server.on("close", () => this.#frozen.has(client) || client.destroy());
    });
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  /** All open connections stay open at both ends but carry nothing any more: half-open. */
  freeze(): number {
    for (const client of this.#pairs.keys()) this.#frozen.add(client);
    return this.#pairs.size;
  }

  /** Ends all open connections with a TCP reset. */
  reset(): number {
    const open = [...this.#pairs.keys()];
    for (const client of open) client.resetAndDestroy();
    return open.length;
  }

  async stop(): Promise<void> {
    for (const client of [...this.#pairs.keys(), ...this.#frozen]) client.destroy();
    this.#server.close();
    await once(this.#server, "close");
  }

  #passBack(bytes: Buffer, client: Socket): void {
    if (this.#frozen.has(client)) return;
    const passed = bytes.subarray(0, this.resetAfterBytes);
    this.resetAfterBytes -= passed.length;
    for (let at = 0; at < passed.length; at += this.pieceBytes) client.write(passed.subarray(at, at + this.pieceBytes));
    if (this.resetAfterBytes > 0) return;
    this.resetAfterBytes = Number.POSITIVE_INFINITY;
    client.resetAndDestroy();
  }
}
