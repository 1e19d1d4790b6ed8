import { receiptReference } from '../../cli/challenges.ts';
import { formatSats } from '../../cli/money.ts';
import { printable } from '../../cli/printable.ts';
import { formatUnits } from '../../src/lib/units.ts';
import { type Answer, type Client, type Errand, SURFACES, type Surface } from './client.ts';
import type { Shop, Spent } from './shop.ts';

/** What became of one client on one surface. */
export interface Outcome {
  readonly client: string;
  readonly package: string;
  readonly surface: Surface;
  readonly isBought: boolean;
  /** Money left the wallet, and no answer came, or nothing that shows the payment. This must never be. */
  readonly isLost: boolean;
  /** Amount and evidence, or why nothing was bought. */
  readonly text: string;
}

/** Longer reasons are cut after a word. In characters. */
const MAX_REASON = 60;
const GAS_OF_FIRST = 50_001;
let errands = 0;

/** Sends one client to every surface, with a new wallet for each. */
export async function judgeClient(
  client: Client,
  shop: Shop,
  surfaces: readonly Surface[] = SURFACES,
): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  for (const surface of surfaces) outcomes.push(await judge(client, surface, shop));
  return outcomes;
}

async function judge(client: Client, surface: Surface, shop: Shop): Promise<Outcome> {
  const wallet = await shop.newWallet();
  const errand = { ...requestOn(surface, shop.origin), surface, origin: shop.origin, network: shop.network, wallet };
  const found: { answer: Answer } | { reason: string } = await client.buy(errand).then(
    (answer) => ({ answer }),
    (error: unknown) => ({ reason: reasonOf(error) }),
  );
  const spent = await wallet.spent();
  const hasPaid = spent.usdc > 0n || spent.gateway > 0n || spent.invoices.length > 0;
  const of = { client: client.name, package: client.package, surface };
  if ('answer' in found && isAnswer(found.answer) && hasPaid) {
    return evidenceOf(found.answer, spent, shop.origin).then(
      (evidence) => ({ ...of, isBought: true, isLost: false, text: `bought: ${evidence}` }),
      (error: unknown) => ({ ...of, isBought: false, isLost: true, text: `PAID, NO EVIDENCE: ${reasonOf(error)}` }),
    );
  }
  const reason = 'reason' in found ? found.reason : returned(found.answer);
  return { ...of, isBought: false, isLost: hasPaid, text: hasPaid ? `PAID, NO ANSWER: ${reason}` : reason };
}

/** The route on a surface. No two errands ask for the same, so that no client is served what another one has bought. */
function requestOn(surface: Surface, origin: string): Pick<Errand, 'url' | 'init'> {
  if (surface !== '/mcp') {
    return { url: `${origin}${surface}/fees/estimate?gas=${GAS_OF_FIRST + errands++}`, init: {} };
  }
  const params = { name: 'paid_fees_estimate', arguments: {} };
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params });
  return { url: `${origin}/mcp`, init: { method: 'POST', headers, body } };
}

/** The route's own answer. A tool call's refusal has the status 200 too. */
const isAnswer = ({ status, body }: Answer): boolean =>
  status === 200 && /"gas":/.test(body) && !/"isError":true/.test(body);

const returned = ({ status, body }: Answer): string =>
  /"isError":true/.test(body) ? 'does not speak MCP' : `returns the ${status} unpaid`;

interface Found {
  readonly amount: string;
  readonly rail: 'usdc' | 'lightning';
  readonly state: string;
  readonly transaction: string | null;
  readonly protocol: string | null;
}

/** Looks the payment up at the service by what the wallet or the receipt names, and compares it with the money that left the wallet. */
async function evidenceOf({ headers }: Answer, spent: Spent, origin: string): Promise<string> {
  const [invoice, ...more] = spent.invoices;
  if (more.length > 0) throw new Error('a client has paid two invoices for one call');
  const receipt = receiptIn(headers.get('payment-response'));
  const reference = invoice?.paymentHash ?? receipt.transaction ?? receiptReference(headers);
  if (!reference) throw new Error('an answer came without anything that names its payment');
  const { payments } = (await (await fetch(`${origin}/v1/payments/${reference}`)).json()) as { payments?: Found[] };
  const found = payments?.[0];
  if (!found) throw new Error(`the service does not know the payment ${reference}`);
  const paid = { usdc: spent.usdc, gateway: spent.gateway, sats: invoice?.amountMsat ?? 0n };
  const channel = receipt.extra?.channelState !== undefined;
  const charged = channel ? BigInt(receipt.extra?.chargedAmount ?? 0) : paid.usdc + paid.gateway + paid.sats;
  if (!channel && charged !== BigInt(found.amount))
    throw new Error(`the ledger has ${found.amount}, the wallet lost ${charged}`);
  const amount = invoice ? formatSats(charged) : `${formatUnits(charged, 6)} USDC`;
  const how = channel ? `voucher after a deposit of ${formatUnits(paid.usdc, 6)} USDC, transaction` : kindOf(spent);
  return `${amount} over ${found.protocol ?? 'x402'}, ${how} ${reference.slice(0, 10)}…`;
}

const kindOf = ({ invoices, gateway }: Spent): string => {
  if (invoices.length > 0) return 'payment hash';
  return gateway > 0n ? 'Gateway transfer' : 'transaction';
};

interface Receipt {
  readonly transaction?: string;
  readonly extra?: { readonly channelState?: unknown; readonly chargedAmount?: string };
}

function receiptIn(header: string | null): Receipt {
  return header === null ? {} : (JSON.parse(Buffer.from(header, 'base64').toString('utf8')) as Receipt);
}

/** The first line of what a client throws. */
function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  // A client may quote a whole body.
  const [line = ''] = printable(text.split('\n')[0] ?? '').split(/\||:? \{/);
  const plain = line
    .replaceAll(/0x[0-9a-fA-F]{40,}/g, '0x…')
    .replaceAll(/127\.0\.0\.1:\d+/g, 'HOST')
    .trim();
  return plain.length > MAX_REASON ? `${plain.slice(0, MAX_REASON).replace(/\W*\s\S*$/, '')}…` : plain;
}
