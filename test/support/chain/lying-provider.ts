import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { type Hex, keccak256 } from 'viem';
import { openNodeLink } from './node-link.ts';

/** A log as JSON-RPC shows it. */
export interface ShownLog {
  readonly address: string;
  readonly topics: readonly string[];
  readonly data: string;
}

/** A receipt as JSON-RPC shows it. A lie keeps the members that it does not change. */
export interface ShownReceipt {
  readonly [member: string]: unknown;
  readonly transactionHash: string;
  readonly blockNumber: string;
  readonly blockHash: string;
  readonly status: string;
  readonly logs: readonly ShownLog[];
}

/** A block of the true chain. */
export interface TrueBlock {
  readonly number: string;
  readonly hash: string;
}

/**
 * A transaction whose receipt is asked for. `raw`: what it carries; null when nobody knows it. `truth`: the chain's
 * receipt.
 */
export interface AskedReceipt {
  readonly hash: string;
  readonly raw: string | null;
  readonly truth: ShownReceipt | null;
  /** The newest block when this receipt was first asked for: an invented transaction stands in it. */
  readonly block: TrueBlock;
}

/** The filter of eth_getLogs, as far as lies read it. */
export interface AskedLogs {
  readonly address?: string;
  readonly topics?: readonly (string | readonly string[] | null)[];
  readonly fromBlock: string;
  readonly toBlock: string;
}

/** What a provider says instead of the truth. Where a member is missing, it tells the truth. */
export interface Lie {
  /**
   * Storage of contracts over which its calls run: address, slot, value. It is asked at every call, so a lie may
   * change.
   */
  storage?(): Record<string, Record<string, string>>;
  receipt?(asked: AskedReceipt): ShownReceipt | null;
  logs?(filter: AskedLogs, truth: readonly object[], block: TrueBlock): readonly object[];
  /**
   * The number of its newest block, from the true one. Below it: the provider is behind, and has nothing of the newer
   * blocks.
   */
  head?(truth: number): number;
  /** Seconds by which the times of its blocks are ahead of the truth. */
  readonly secondsAhead?: number;
  /** It takes transactions and passes none on. */
  readonly swallows?: boolean;
}

/** The raw transactions that any provider of a world has got, by their hashes. */
export type Seen = Map<string, string>;

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}
type Outcome = { readonly result: unknown } | { readonly error: { readonly code: number; readonly message: string } };
type Ask = (method: string, params: readonly unknown[]) => Promise<Outcome>;

const quantity = (value: number): string => `0x${value.toString(16)}`;
/** As Arc's public endpoint refuses. */
const LIMITED: Outcome = { error: { code: -32011, message: 'request limit reached' } };
const beyond = (asked: number, head: number): Outcome => ({
  error: { code: -32000, message: `request beyond head block: requested ${asked}, head ${head}` },
});
/** Where a state read names its block. */
const TAG_AT: Readonly<Record<string, number>> = {
  eth_getBalance: 1,
  eth_getCode: 1,
  eth_getTransactionCount: 1,
  eth_getStorageAt: 2,
};

/**
 * A provider of the true chain on 127.0.0.1, over HTTP with batches. It is honest until it is given a lie, and then
 * answers consistently with it. It counts
 * the calls of each method, and may accept only some requests a second, as Arc's public endpoint does.
 */
export async function startLyingProvider(target: string, seen: Seen = new Map()) {
  const node = openNodeLink(target);
  const counts = new Map<string, number>();
  let requests = 0;
  let session: ReturnType<typeof openSession> | null = null;
  let takesNow: () => boolean = () => true;
  let refusals = 0;

  const ask: Ask = async (method, params) =>
    JSON.parse(await node.post(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))) as Outcome;

  async function answer(body: string, calls: readonly Call[]): Promise<string> {
    if (!session) return node.post(body);
    const { tell } = session;
    const replies = await Promise.all(
      calls.map(async (call) => {
        const outcome = await tell(call);
        const said = 'error' in outcome ? { error: outcome.error } : { result: outcome.result };
        return { jsonrpc: '2.0', id: call.id, ...said };
      }),
    );
    return JSON.stringify(body.startsWith('[') ? replies : replies[0]);
  }

  async function serve(body: string, response: ServerResponse): Promise<void> {
    const calls = [JSON.parse(body)].flat() as Call[];
    response.setHeader('content-type', 'application/json');
    if (!takesNow()) {
      refusals += 1;
      // Public endpoints refuse in both ways.
      if (refusals % 2 === 0) return void response.writeHead(429).end('{}');
      const refused = calls.map(({ id }) => ({ jsonrpc: '2.0', id, ...LIMITED }));
      return void response.end(JSON.stringify(body.startsWith('[') ? refused : refused[0]));
    }
    requests += 1;
    for (const { method, params } of calls) {
      counts.set(method, (counts.get(method) ?? 0) + 1);
      if (method === 'eth_sendRawTransaction') seen.set(keccak256(params[0] as Hex), String(params[0]).toLowerCase());
    }
    response.end(await answer(body, calls));
  }

  const server = createServer((request, response) => {
    // A node that has gone meanwhile takes the connection along.
    text(request)
      .then((body) => serve(body, response))
      .catch(() => response.destroy());
  });
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready));

  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** From now on; null is the truth. */
    lie: (next: Lie | null): void => {
      session = next && openSession(next, ask, seen);
    },
    /** From now on it accepts so many requests a second, and refuses the others; null accepts all. */
    pace: (perSecond: number | null): void => {
      takesNow = perSecond === null ? () => true : createBucket(perSecond);
    },
    /** The calls of each method that it has accepted. */
    counts: (): Readonly<Record<string, number>> => Object.fromEntries(counts),
    /** The HTTP requests that it has accepted. */
    requests: (): number => requests,
    stop: async (): Promise<void> => {
      server.closeAllConnections();
      await new Promise((closed) => server.close(closed));
      await node.close();
    },
  };
}

export type LyingProvider = Awaited<ReturnType<typeof startLyingProvider>>;

function createBucket(perSecond: number): () => boolean {
  let [level, filledMs] = [perSecond, performance.now()];
  return () => {
    const now = performance.now();
    level = Math.min(perSecond, level + ((now - filledMs) / 1000) * perSecond);
    filledMs = now;
    if (level < 1) return false;
    level -= 1;
    return true;
  };
}

/** Tells one lie. What it has invented stays as it was told first. */
function openSession(lie: Lie, ask: Ask, seen: Seen) {
  const blocks = new Map<string, TrueBlock>();

  const resultOf = async <T>(method: string, params: readonly unknown[]): Promise<T> => {
    const outcome = await ask(method, params);
    if ('error' in outcome) throw new Error(`${method}: ${outcome.error.message}`);
    return outcome.result as T;
  };

  async function heads(): Promise<{ truth: number; shown: number }> {
    const truth = Number(await resultOf<string>('eth_blockNumber', []));
    return { truth, shown: Math.max(0, lie.head?.(truth) ?? truth) };
  }

  async function blockFor(what: string): Promise<TrueBlock> {
    const known = blocks.get(what);
    if (known) return known;
    const { number, hash } = await resultOf<TrueBlock>('eth_getBlockByNumber', ['latest', false]);
    const block = { number, hash };
    blocks.set(what, block);
    return block;
  }

  /**
   * The block of a read on the true chain, and the number that the reader is told. Null when the provider is behind
   * it.
   */
  async function place(tag: unknown): Promise<{ at: string; told: number } | { refusal: Outcome }> {
    const { truth, shown } = await heads();
    const asked = typeof tag === 'string' && tag.startsWith('0x') ? Number(tag) : shown;
    if (asked > shown) return { refusal: beyond(asked, shown) };
    return { at: quantity(Math.min(asked, truth)), told: asked };
  }

  async function tellBlock([tag, isFull]: readonly unknown[]): Promise<Outcome> {
    const found = await place(tag);
    if ('refusal' in found) return { result: null };
    const block = await resultOf<Record<string, string> | null>('eth_getBlockByNumber', [found.at, isFull]);
    if (!block) return { result: null };
    const timestamp = quantity(Number(block.timestamp) + (lie.secondsAhead ?? 0));
    if (Number(block.number) === found.told) return { result: { ...block, timestamp } };
    const hash = keccak256(`${block.hash as Hex}${found.told.toString(16).padStart(16, '0')}`);
    return { result: { ...block, timestamp, number: quantity(found.told), hash } };
  }

  async function tellCall([call, tag]: readonly unknown[]): Promise<Outcome> {
    const found = await place(tag);
    if ('refusal' in found) return found.refusal;
    const time = lie.secondsAhead ? { time: quantity(Math.floor(Date.now() / 1000) + lie.secondsAhead) } : {};
    const storage = Object.entries(lie.storage?.() ?? {}).map(([at, slots]) => [at, { stateDiff: slots }]);
    return ask('eth_call', [call, found.at, Object.fromEntries(storage), { number: quantity(found.told), ...time }]);
  }

  async function tellLogs([filter]: readonly unknown[]): Promise<Outcome> {
    const asked = filter as AskedLogs;
    const { truth, shown } = await heads();
    const numberOf = (tag: string): number => (tag.startsWith('0x') ? Number(tag) : shown);
    const [from, to] = [numberOf(asked.fromBlock), numberOf(asked.toBlock)];
    if (to > shown) return beyond(to, shown);
    const range = { fromBlock: quantity(from), toBlock: quantity(Math.min(to, truth)) };
    const told = from > truth ? [] : await resultOf<object[]>('eth_getLogs', [{ ...asked, ...range }]);
    return { result: lie.logs ? lie.logs(asked, told, await blockFor('logs')) : told };
  }

  async function tellReceipt([hash]: readonly unknown[]): Promise<Outcome> {
    const { truth: head, shown } = await heads();
    const found = await resultOf<ShownReceipt | null>('eth_getTransactionReceipt', [hash]);
    const truth = found && shown < head && Number(found.blockNumber) > shown ? null : found;
    if (!lie.receipt) return { result: truth };
    const key = String(hash).toLowerCase();
    const raw = seen.get(key) ?? (await resultOf<{ input: string } | null>('eth_getTransactionByHash', [hash]))?.input;
    return { result: lie.receipt({ hash: key, raw: raw ?? null, truth, block: await blockFor(key) }) };
  }

  /** A state read. Its block is the last parameter that `at` names. */
  async function tellState(method: string, params: readonly unknown[], at: number): Promise<Outcome> {
    const found = await place(params[at]);
    if ('refusal' in found) return found.refusal;
    const { truth, shown } = await heads();
    // `pending` holds more than the newest block, and only a provider that is not behind has it.
    return shown < truth ? ask(method, [...params.slice(0, at), found.at]) : ask(method, params);
  }

  return {
    async tell({ method, params }: Call): Promise<Outcome> {
      switch (method) {
        case 'eth_blockNumber':
          return { result: quantity((await heads()).shown) };
        case 'eth_getBlockByNumber':
          return tellBlock(params);
        case 'eth_call':
          return tellCall(params);
        case 'eth_getLogs':
          return tellLogs(params);
        case 'eth_getTransactionReceipt':
          return tellReceipt(params);
        case 'eth_sendRawTransaction':
          return lie.swallows ? { result: keccak256(params[0] as Hex) } : ask(method, params);
        default: {
          const at = TAG_AT[method];
          return at === undefined ? ask(method, params) : tellState(method, params, at);
        }
      }
    },
  };
}
