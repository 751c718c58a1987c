/** Reaches a learner from outside its cluster: a local port that the API server forwards to the pod's. */

import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type KubeConfig, PortForward } from "@kubernetes/client-node";

/** @throws Error if this machine has no free port */
export async function forwardPort(
  config: KubeConfig,
  target: { namespace: string; pod: string; port: number },
): Promise<{ address: string; close(): void }> {
  const forward = new PortForward(config);
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
    socket.on("error", () => {}); // the gRPC client notices the error and redials
    forward
      .portForward(target.namespace, target.pod, [target.port], socket, null, socket)
      .then((found) => {
        const webSocket = typeof found === "function" ? found() : found;
        if (!webSocket) return socket.destroy();
        webSocket.onclose = () => socket.destroy();
        socket.on("close", () => webSocket.close());
        return undefined;
      })
      .catch(() => socket.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}
