import { createServer } from 'node:http';
import { createSimChain } from '../../../test/support/chain/arc-simulator/chain.ts';
import { blockJson, receiptsJson } from '../../../test/support/chain/arc-simulator/json.ts';

// A chain node of any length in little memory. It renders a few hundred simulated blocks once and repeats them with other numbers, hashes and times. It
// answers faster than a collector can ask, so the benchmark measures the collector.

const PORT = Number(process.env.PORT);
const HEAD = Number(process.env.HEAD);
const TRANSACTIONS = Number(process.env.TRANSACTIONS ?? 10);
const TEMPLATES = 256;
const GENESIS_SECONDS = Math.floor(Date.now() / 1000) - Math.ceil(HEAD / 2);

const chain = createSimChain({ seed: 'bench', genesisMs: 0, transactions: TRANSACTIONS });
const hex = (value: number) => `0x${value.toString(16)}`;
const hashOf = (block: number) => `0x${block.toString(16).padStart(64, '0')}`;

/** The text between the positions of block number, hash, parent hash and time. */
type Template = { readonly texts: readonly string[]; readonly places: readonly string[] };

function toTemplate(value: unknown, block: ReturnType<typeof chain.block>): Template {
  const text = JSON.stringify(value)
    .replaceAll(block.hash, '@hash')
    .replaceAll(block.parentHash, '@parent')
    .replaceAll(`"number":"${hex(block.number)}"`, '"number":"@number"')
    .replaceAll(`"blockNumber":"${hex(block.number)}"`, '"blockNumber":"@number"')
    .replaceAll(`"timestamp":"${hex(block.at)}"`, '"timestamp":"@time"');
  return {
    texts: text.split(/@(?:hash|parent|number|time)/),
    places: text.match(/@(?:hash|parent|number|time)/g) ?? [],
  };
}

const sources = Array.from({ length: TEMPLATES }, (_, at) => chain.block(at + 1));
const templates = {
  whole: sources.map((block) => toTemplate(blockJson(block, true), block)),
  header: sources.map((block) => toTemplate(blockJson(block, false), block)),
  receipts: sources.map((block) => toTemplate(receiptsJson(block), block)),
};

function render(kind: keyof typeof templates, block: number): string {
  const template = templates[kind][block % TEMPLATES];
  if (!template) throw new Error('no such template');
  const values: Record<string, string> = {
    '@hash': hashOf(block),
    '@parent': hashOf(Math.max(block - 1, 0)),
    '@number': hex(block),
    '@time': hex(GENESIS_SECONDS + Math.floor(block / 2)),
  };
  return template.texts.map((text, at) => text + (values[template.places[at] ?? ''] ?? '')).join('');
}

function feeHistory(count: number, newest: number): string {
  const fees = Array.from(
    { length: count + 1 },
    (_, at) => sources[(newest - count + 1 + at) % TEMPLATES]?.baseFee ?? 0n,
  );
  const gasUsedRatio = Array.from({ length: count }, () => 0.05);
  return JSON.stringify({
    oldestBlock: hex(newest - count + 1),
    baseFeePerGas: fees.map((fee) => `0x${fee.toString(16)}`),
    gasUsedRatio,
  });
}

function answer(method: string, params: readonly unknown[]): string | null {
  if (method === 'eth_chainId') return '"0x13b2"';
  if (method === 'eth_getBlockReceipts') return render('receipts', Number(params[0]));
  if (method === 'eth_feeHistory') return feeHistory(Number(params[0]), Number(params[1]));
  if (method === 'eth_getLogs') return '[]';
  if (method === 'eth_getCode') return `"0x${'60'.repeat(2000)}"`;
  if (method !== 'eth_getBlockByNumber') return null;
  const block = String(params[0]).startsWith('0x') ? Number(params[0]) : params[0] === 'earliest' ? 0 : HEAD;
  return render(params[1] === true ? 'whole' : 'header', block);
}

/** A JSON-RPC answer. A method that the collector does not need is not known here. */
function respond({ id, method, params }: { id: number; method: string; params: readonly unknown[] }): string {
  const result = answer(method, params);
  const told = result === null ? '"error":{"code":-32601,"message":"no such method"}' : `"result":${result}`;
  return `{"jsonrpc":"2.0","id":${id},${told}}`;
}

createServer(async (request, response) => {
  let text = '';
  for await (const chunk of request) text += chunk;
  if (text === '') return void response.end();
  const body = JSON.parse(text);
  const parts = [body].flat().map(respond);
  response.end(Array.isArray(body) ? `[${parts.join(',')}]` : parts[0]);
}).listen(PORT, '127.0.0.1');
