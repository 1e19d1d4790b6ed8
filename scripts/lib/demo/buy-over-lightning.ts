import { boundUrl, readChallenge } from '../../../cli/challenges.ts';
import { formatSats } from '../../../cli/money.ts';
import { proofHeader } from '../../../cli/ways/l402.ts';
import {
  checkLightningOffer,
  checkPaidPreimage,
  type LightningOffer,
  readLightningOffer,
  statedPrice,
} from '../../../cli/ways/lightning.ts';
import type { EmbeddedLightning } from '../../../dev/lightning/lightning.ts';

interface Purchase {
  readonly lightning: EmbeddedLightning;
  readonly origin: string;
  /** The path that is bought, and a path that the same proof must not buy, with their queries. */
  readonly calls: { readonly paid: string; readonly other: string };
  readonly say: (line: string) => void;
  readonly stopping: AbortSignal;
}

interface Asked {
  readonly offer: LightningOffer;
  readonly amountMsat: bigint;
  readonly invoice: string;
  readonly paymentHash: Uint8Array;
}

/** The buyer's limit in millisatoshis: 100 sat, about ten times our highest price. */
const CEILING_MSAT = 100_000n;

/**
 * Buys one call in sats through a real channel, then presents the proof again for another request, and prints each step.
 * Throws at the first broken promise: the offer, the preimage, a status, the receipt, the seller's books, the refusal.
 */
export async function buyOverLightning(purchase: Purchase): Promise<void> {
  const { lightning, origin, calls, say, stopping } = purchase;
  const url = new URL(`${origin}${calls.paid}`);
  say(`\nBuying over Lightning  GET ${calls.paid}`);
  const { offer, amountMsat, invoice, paymentHash } = await ask(url, purchase);
  const hash = Buffer.from(paymentHash).toString('hex');
  const before = await receivedMsat(lightning, hash);

  const preimage = await lightning.pay(invoice);
  const fault = checkPaidPreimage(preimage, paymentHash);
  expect(fault === null, `the preimage does not fit: ${fault}`);
  say(`  paid ${formatSats(amountMsat)} through the channel; the preimage’s SHA-256 is the payment hash`);
  say(`      ${hash}`);

  const { entry: accepted, resource } = offer;
  const _proof = { url: boundUrl(url), paymentHash: hash, invoice, preimage };
  const headers = proofHeader({ protocol: 'x402', resource, accepted }, preimage);
  say('  → the same GET with PAYMENT-SIGNATURE: the unchanged offer, and the preimage (not shown here)');
  const answer = await fetch(url, { headers, signal: stopping });
  const body = await answer.text();
  expect(answer.status === 200, `the paid call answered ${answer.status} instead of 200: ${body.slice(0, 300)}`);
  say(`  ← 200  ${body}`);
  const receipt = read(answer.headers.get('payment-response'));
  expect(receipt.success === true && receipt.transaction === hash, 'PAYMENT-RESPONSE does not name this payment');
  say(`  PAYMENT-RESPONSE: transaction ${hash}`);
  const after = await receivedMsat(lightning, hash);
  expect(before === 0n && after === amountMsat, 'the seller’s node does not have exactly this payment');
  say(`  the seller’s node: settled, ${formatSats(after)}`);

  await failToReuse(`${origin}${calls.other}`, headers, purchase);
}

/** Asks without a payment, and checks the offer as a buyer must before it pays. */
async function ask(url: URL, { lightning, say, stopping }: Purchase): Promise<Asked> {
  const answer = await fetch(url, { signal: stopping });
  const body = await answer.text();
  expect(answer.status === 402, `the unpaid call answered ${answer.status} instead of 402: ${body.slice(0, 300)}`);
  const offer = readLightningOffer(answer.headers.get('payment-required') ?? '');
  if (!offer) throw new Error('the 402 offers nothing over Lightning');
  say('  → GET without a payment');
  say('  ← 402  PAYMENT-REQUIRED says:');
  for (const line of JSON.stringify(offer.entry, null, 2).split('\n')) say(`      ${line}`);
  const price = statedPrice(body);
  if (!price) throw new Error('the body of the 402 lacks the price in dollars or the rate');
  const now = Math.floor(Date.now() / 1000);
  const { resourceUrl } = offer;
  const purchase = { method: 'GET', url: boundUrl(url), resourceUrl, now, ceilingMsat: CEILING_MSAT };
  const verdict = checkLightningOffer(offer.entry, purchase);
  if (!verdict.ok) throw new Error(`the buyer refuses the offer: ${verdict.reason}`);
  const { invoice, text, network } = verdict;
  const payee = Buffer.from(invoice.payee).toString('hex');
  expect(network === lightning.network && payee === lightning.nodeId, 'the invoice is not the seller’s node’s');
  const { amountMsat, paymentHash } = invoice;
  say(`  ${price.priceUsd} USD at ${price.btcUsd} USD a bitcoin: ${formatSats(amountMsat)}`);
  say('  checked before paying: the invoice is signed by payTo, for this amount and for exactly this request');
  return { offer, amountMsat, invoice: text, paymentHash };
}

async function failToReuse(url: string, headers: Record<string, string>, purchase: Purchase): Promise<void> {
  const { calls, say, stopping } = purchase;
  say(`\nUsing the same proof for another request  GET ${calls.other}`);
  const answer = await fetch(url, { headers, signal: stopping });
  await answer.text();
  expect(answer.status === 402, `the second use answered ${answer.status} instead of 402`);
  const { error } = readChallenge(answer.headers.get('payment-required') ?? '');
  const receipt = read(answer.headers.get('payment-response'));
  expect(receipt.success === false, 'PAYMENT-RESPONSE of the refusal does not say that nothing was settled');
  say(`  ← 402  ${error}: one payment buys one answer`);
}

/** The amount that the seller's own node has received for a payment hash. */
async function receivedMsat({ lndUrl, macaroon }: EmbeddedLightning, paymentHash: string): Promise<bigint> {
  const headers = { 'Grpc-Metadata-macaroon': macaroon };
  const answer = await fetch(`${lndUrl}/v1/invoice/${paymentHash}`, { headers });
  const { state, amt_paid_msat: paid } = (await answer.json()) as { state?: string; amt_paid_msat?: string };
  return state === 'SETTLED' ? BigInt(paid ?? 0) : 0n;
}

function read(header: string | null): { success?: unknown; transaction?: unknown } {
  return header === null ? {} : JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
}

function expect(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}
