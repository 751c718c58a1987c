/** The API server's end of an exec connection: WebSocket messages (RFC 6455) of the channel protocol. */
import { createHash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";

export const STDOUT = 1;
export const STDERR = 2;
export const STATUS = 3;

/** Answers the upgrade request; frames follow. */
export function accept(request: IncomingMessage, socket: Duplex): void {
  const key = `${request.headers["sec-websocket-key"]}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`;
  const headers = {
    Upgrade: "websocket",
    Connection: "Upgrade",
    "Sec-WebSocket-Accept": createHash("sha1").update(key).digest("base64"),
    "Sec-WebSocket-Protocol": "v5.channel.k8s.io",
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join("")}\r\n`);
}

/** Returns a binary message for one channel. */
export function frame(channel: number, data: Buffer | string): Buffer {
  const payload = Buffer.concat([Buffer.of(channel), Buffer.from(data)]);
  const head = Buffer.alloc(10);
  head[0] = 0x82;
  head[1] = 127;
  head.writeBigUInt64BE(BigInt(payload.length), 2);
  return Buffer.concat([head, payload]);
}
