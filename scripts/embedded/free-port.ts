import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';

/**
 * The wanted port of this machine, or a free one for 0, after a look whether it can be had; throws in words when it cannot.
 * For servers that must know their port before they listen; nothing keeps another program from taking it in between.
 */
export async function freePort(wanted = 0): Promise<number> {
  const probe = createServer().listen(wanted, '127.0.0.1');
  try {
    await once(probe, 'listening');
  } catch (cause) {
    throw new Error(`port ${wanted} cannot be served on: another program has it, or it is not allowed`, { cause });
  }
  const { port } = probe.address() as AddressInfo;
  probe.close();
  await once(probe, 'close');
  return port;
}
