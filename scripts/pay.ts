import { parseArgs } from 'node:util';
import type { PaymentPayload, SettleResponse } from '@x402/core/types';
import { decodePaymentResponseHeader, x402HTTPClient } from '@x402/fetch';
import { fetchListedPrice } from './lib/listed-price.ts';
import { type BuyableOffer, challengeErrorOf, readOffer } from './lib/offer.ts';
import { presentPayment } from './lib/present-payment.ts';
import { printable } from './lib/printable.ts';
import { problemDetail } from './lib/problem-detail.ts';
import { refusalOf } from './lib/spending.ts';
import { createStockClient } from './lib/stock-client.ts';
import { formatUsdc, parseUsdc } from './lib/usdc.ts';

const USAGE = `Buys one answer from a seller that takes x402 payments in USDC.

  npm run pay -- URL [--max-usdc 0.01] [--dry-run]

  --max-usdc N   the most to pay, in USDC (default 0.01)
  --dry-run      show what would be paid, sign nothing; no key needed
  --help         this text

The buyer's key is read from BUYER_PRIVATE_KEY (0x and 64 hex digits).
The answer's body goes to standard output, everything else to standard error.
Exit code: 0 answered, 1 refused or failed, 2 wrong usage.`;

interface Order {
  readonly url: URL;
  readonly ceiling: bigint;
  /** Null for a dry run. */
  readonly privateKey: `0x${string}` | null;
}

class UsageError extends Error {}

/** To a person; standard output holds nothing but the answer. */
const say = (line: string): void => console.error(line);

function readOrder(): Order | null {
  const { values, positionals } = parse();
  if (values.help) return null;
  const [target] = positionals;
  if (positionals.length !== 1 || target === undefined) throw new UsageError('one URL is needed');
  if (!URL.canParse(target)) throw new UsageError(`not a URL: ${target}`);
  const url = new URL(target);
  if (!['http:', 'https:'].includes(url.protocol)) throw new UsageError(`not an http or https URL: ${target}`);
  const ceiling = parseUsdc(values['max-usdc']);
  if (ceiling === null) throw new UsageError('--max-usdc is a decimal number with at most 6 decimals');
  if (values['dry-run']) return { url, ceiling, privateKey: null };
  const key = process.env.BUYER_PRIVATE_KEY ?? '';
  if (!/^0x[0-9a-fA-F]{64}$/.test(key)) throw new UsageError('BUYER_PRIVATE_KEY must hold 0x and 64 hex digits');
  return { url, ceiling, privateKey: key as `0x${string}` };
}

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        'max-usdc': { type: 'string', default: '0.01' },
        'dry-run': { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Asks without paying; returns the offer, or null when the answer came for free (and is printed). */
async function ask(url: URL): Promise<BuyableOffer | null> {
  // A redirect is not followed: the payment would be made out to whoever the other end is.
  const answer = await fetch(url, { redirect: 'manual' });
  if (answer.ok) {
    say(`free: status ${answer.status}, nothing to pay`);
    await printBody(answer);
    return null;
  }
  const header = answer.headers.get('payment-required');
  if (answer.status === 402 && header !== null) return readOffer(header);
  await answer.body?.cancel();
  const where = answer.headers.get('location');
  throw new Error(`status ${answer.status} without an x402 challenge${where ? `, moved to ${printable(where)}` : ''}`);
}

async function printBody(answer: Response): Promise<void> {
  const body = Buffer.from(await answer.arrayBuffer());
  await new Promise<void>((resolve, reject) => {
    process.stdout.write(body, (error) => (error ? reject(error) : resolve()));
  });
}

function describe({ challenge, requirement, amountUnits }: BuyableOffer, listed: bigint | null): void {
  say(`asked:   ${formatUsdc(amountUnits)} on ${requirement.network} to ${requirement.payTo}`);
  if (challenge.resource.description) say(`for:     ${printable(challenge.resource.description)}`);
  say(
    `listed:  ${listed === null ? 'no price could be read from the listing; the ceiling alone holds' : formatUsdc(listed)}`,
  );
}

function receiptOf(answer: Response): SettleResponse | null {
  try {
    return decodePaymentResponseHeader(answer.headers.get('payment-response') ?? '');
  } catch {
    return null;
  }
}

/** Why a presented payment got no answer: the headers' own reason where there is one, else what the body says. */
async function reasonOf(answer: Response, receipt: SettleResponse | null): Promise<string> {
  const reason = receipt?.errorReason ?? challengeErrorOf(answer.headers);
  return reason ?? problemDetail(await answer.text().catch(() => '')) ?? 'no reason given';
}

/** A signed payment stays good until it expires: the buyer must know which one before signing another. */
function openOutcome(failure: string, { payload }: PaymentPayload): string {
  const { nonce, validBefore } = payload.authorization as { nonce: string; validBefore: string };
  return `${failure}; whether it is charged is open until ${validBefore} (Unix seconds), its nonce is ${nonce}`;
}

async function pay(url: URL, offer: BuyableOffer, privateKey: `0x${string}`): Promise<void> {
  const { network, asset } = offer.requirement;
  const terms = { privateKey, network: network as `eip155:${string}`, asset, maxUnits: offer.amountUnits };
  const client = new x402HTTPClient(createStockClient(terms));
  // The challenge that was judged is the one that is paid; asking again could bring another price.
  const payload = await client.createPaymentPayload(offer.challenge);
  const answer = await presentPayment(url, client.encodePaymentSignatureHeader(payload), say).catch(
    (cause: unknown) => {
      throw new Error(openOutcome('no answer', payload), { cause });
    },
  );
  const receipt = receiptOf(answer);
  if (!answer.ok) {
    const failure = `status ${answer.status}: ${printable(await reasonOf(answer, receipt))}`;
    throw new Error([409, 503].includes(answer.status) ? openOutcome(failure, payload) : failure);
  }
  await printBody(answer);
  if (receipt?.success) say(`paid:    ${formatUsdc(offer.amountUnits)}, transaction ${printable(receipt.transaction)}`);
  else say(`paid:    ${formatUsdc(offer.amountUnits)} was authorized, but the answer came without a receipt`);
}

async function main(): Promise<void> {
  const order = readOrder();
  if (order === null) return console.log(USAGE);
  const offer = await ask(order.url);
  if (offer === null) return;
  const listed = await fetchListedPrice(order.url);
  describe(offer, listed);
  const refusal = refusalOf({ asked: offer.amountUnits, ceiling: order.ceiling, listed });
  if (refusal !== null) throw new Error(`${refusal}; nothing was signed`);
  if (order.privateKey === null) return say('dry run: this would be paid; nothing was signed');
  await pay(order.url, offer, order.privateKey);
}

try {
  await main();
} catch (error) {
  const usage = error instanceof UsageError;
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  say(`${usage ? 'usage' : 'failed'}: ${error instanceof Error ? error.message : error}${cause}`);
  if (usage) say(`\n${USAGE}`);
  process.exitCode = usage ? 2 : 1;
}
