import { connect, createServer, type Socket } from 'node:net';
import { ownPort } from './own-port.ts';

/** A small load balancer. Each connection goes to the next target, and skips targets that do not answer. */
export async function startRoundRobin(targets: readonly string[]) {
  const port = await ownPort();
  const sockets = new Set<Socket>();
  let turn = 0;

  function join(client: Socket, triesLeft: number): void {
    const target = new URL(targets[turn++ % targets.length] as string);
    const server = connect(Number(target.port), target.hostname);
    let isOpen = false;
    server.once('connect', () => {
      isOpen = true;
      client.pipe(server).pipe(client);
    });
    server.on('error', () => {
      if (!isOpen && triesLeft > 0) join(client, triesLeft - 1);
      else client.destroy();
    });
    server.on('close', () => isOpen && client.destroy());
    client.on('close', () => server.destroy());
  }

  const proxy = createServer((client) => {
    sockets.add(client);
    client.on('error', () => {});
    client.once('close', () => sockets.delete(client));
    join(client, targets.length - 1);
  });
  await new Promise<void>((resolve) => proxy.listen(port, '127.0.0.1', resolve));
  return {
    origin: `http://127.0.0.1:${port}`,
    stop: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
