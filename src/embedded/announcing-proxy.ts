import { Agent, createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Blocks as JSON-RPC shows them, as far as they are changed here. */
interface ShownBlock {
  readonly number: `0x${string}` | null;
  extraData: string;
}

interface Reply {
  readonly result?: ShownBlock | null;
}

/** The address that the service reads the chain from. */
export interface AnnouncingProxy {
  readonly url: string;
  stop(): Promise<void>;
}

/** The calls whose results are blocks. */
const GIVES_BLOCKS = /"eth_getBlockBy(Number|Hash)"/;

/**
 * Passes JSON-RPC over HTTP on to the node, and writes the next block's base fee into the `extraData` of every block, as Arc does: eight bytes,
 * big-endian. The node cannot do that itself. The blocks' hashes are the node's, so they do not match the changed headers; no part of the service computes them again.
 * `announced` resolves with the fee in wei that the block's child has, or null for a block from before the miner's first.
 */
export async function startAnnouncingProxy(
  nodeUrl: string,
  announced: (block: number) => Promise<bigint | null>,
): Promise<AnnouncingProxy> {
  const agent = new Agent({ keepAlive: true });
  const server = createServer((incoming, outgoing) => {
    void pass(incoming, outgoing).catch(() => outgoing.destroy());
  });

  async function pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const asked = await readAll(incoming);
    const { status, body } = await ask(nodeUrl, agent, asked);
    const answer = GIVES_BLOCKS.test(asked.toString('utf8')) ? await announceIn(body, announced) : body;
    outgoing.writeHead(status, { 'content-type': 'application/json', 'content-length': answer.length }).end(answer);
  }

  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stop: () =>
      new Promise((resolve) => {
        agent.destroy();
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function announceIn(body: Buffer, announced: (block: number) => Promise<bigint | null>): Promise<Buffer> {
  const replies = JSON.parse(body.toString('utf8')) as Reply | Reply[];
  for (const { result } of Array.isArray(replies) ? replies : [replies]) {
    if (typeof result?.extraData !== 'string' || result.number === null) continue;
    const fee = await announced(Number(result.number));
    if (fee !== null) result.extraData = `0x${fee.toString(16).padStart(16, '0')}`;
  }
  return Buffer.from(JSON.stringify(replies));
}

function ask(url: string, agent: Agent, body: Buffer): Promise<{ status: number; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': body.length };
    request(url, { method: 'POST', agent, headers }, (response) => {
      readAll(response).then((answer) => resolve({ status: response.statusCode ?? 502, body: answer }), reject);
    })
      .on('error', reject)
      .end(body);
  });
}

async function readAll(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
