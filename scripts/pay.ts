import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { type LightningOffer, readLightningOffer, statedPrice } from './lib/lightning/lightning-offer.ts';
import type { LightningPayer } from './lib/lightning/lightning-payer.ts';
import { readProof } from './lib/lightning/lightning-proof-file.ts';
import { formatSats, parseSats } from './lib/lightning/sats.ts';
import { isAskedResource } from './lib/pay/asked-resource.ts';
import { readChallenge } from './lib/pay/challenge.ts';
import { printable } from './lib/pay/printable.ts';
import { parseUsdc } from './lib/pay/usdc.ts';

const USAGE = `Buys one answer from a seller that takes x402 payments in USDC, or in bitcoin over Lightning.

  npm run pay -- URL [--rail usdc|lightning] [--max-usdc 0.01] [--max-sats 100] [--dry-run]
  npm run pay -- --proof FILE

  --rail R       how to pay (default: over Lightning where the seller offers that, else in USDC)
  --max-usdc N   the most to pay, in USDC (default 0.01)
  --max-sats N   the most to pay, in whole sats (default 100); fees count too, where the payer can be limited
  --dry-run      show what would be paid, pay and sign nothing; no key needed
  --proof FILE   redeem a Lightning payment whose answer did not arrive; never pays twice
  --help         this text

USDC: the buyer's key is read from BUYER_PRIVATE_KEY (0x and 64 hex digits).
Lightning: the payer is one of
  NWC_PAYER      a nostr+walletconnect:// connection that may pay
  LND_PAYER_URL  LND's REST interface, with LND_PAYER_MACAROON (hex) and, for its own certificate, LND_PAYER_TLS_CERT (a file)
  PAYER_URL      a URL that takes POST { "invoice" } and answers { "preimage" }, as the demonstration has one
The answer's body goes to standard output, everything else to standard error.
Exit code: 0 answered, 1 refused or failed, 2 wrong usage.`;

interface Order {
  readonly url: URL;
  readonly rail: 'usdc' | 'lightning' | null;
  readonly ceilingUnits: bigint;
  readonly ceilingMsat: bigint;
  readonly dryRun: boolean;
}

interface Challenge {
  readonly header: string;
  readonly body: string;
}

class UsageError extends Error {}

/** Prints to standard error. Standard output holds only the answer. */
const say = (line: string): void => console.error(line);

function parse() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        rail: { type: 'string' },
        'max-usdc': { type: 'string', default: '0.01' },
        'max-sats': { type: 'string', default: '100' },
        'dry-run': { type: 'boolean', default: false },
        proof: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function readOrder({ values, positionals }: ReturnType<typeof parse>): Order {
  const [target] = positionals;
  if (positionals.length !== 1 || target === undefined) throw new UsageError('one URL is needed');
  if (!URL.canParse(target)) throw new UsageError(`not a URL: ${target}`);
  const url = new URL(target);
  if (!['http:', 'https:'].includes(url.protocol)) throw new UsageError(`not an http or https URL: ${target}`);
  const { rail = null } = values;
  if (rail !== null && rail !== 'usdc' && rail !== 'lightning') throw new UsageError('--rail is usdc or lightning');
  const ceilingUnits = parseUsdc(values['max-usdc']);
  if (ceilingUnits === null) throw new UsageError('--max-usdc is a decimal number with at most 6 decimals');
  const ceilingMsat = parseSats(values['max-sats']);
  if (ceilingMsat === null) throw new UsageError('--max-sats is a whole number');
  return { url, rail, ceilingUnits, ceilingMsat, dryRun: values['dry-run'] };
}

function buyerKey(): `0x${string}` {
  const key = process.env.BUYER_PRIVATE_KEY ?? '';
  if (!/^0x[0-9a-fA-F]{64}$/.test(key)) throw new UsageError('BUYER_PRIVATE_KEY must hold 0x and 64 hex digits');
  return key as `0x${string}`;
}

async function findPayer(): Promise<LightningPayer | null> {
  const { payerFrom } = await import('./lib/lightning/payer-from-env.ts');
  try {
    return await payerFrom(process.env);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Asks without paying. Returns the challenge, or null when the answer was free (and is printed). */
async function ask(url: URL): Promise<Challenge | null> {
  // Does not follow redirects, because then the payment would be made out to a third party.
  const answer = await fetch(url, { redirect: 'manual' });
  if (answer.ok) {
    say(`free: status ${answer.status}, nothing to pay`);
    await print(Buffer.from(await answer.arrayBuffer()));
    return null;
  }
  const header = answer.headers.get('payment-required');
  if (answer.status === 402 && header !== null) return { header, body: await answer.text() };
  await answer.body?.cancel();
  const where = answer.headers.get('location');
  throw new Error(`status ${answer.status} without an x402 challenge${where ? `, moved to ${printable(where)}` : ''}`);
}

async function print(body: Buffer): Promise<void> {
  await new Promise<void>((written, reject) => {
    process.stdout.write(body, (error) => (error ? reject(error) : written()));
  });
}

async function buyInUsdc({ url, ceilingUnits, dryRun }: Order, { header }: Challenge): Promise<void> {
  const { resource } = readChallenge(header);
  if (!isAskedResource(url, resource.url)) {
    throw new Error(`the offer is for ${printable(resource.url)}, which is not what was asked for; nothing was signed`);
  }
  const privateKey = dryRun ? null : buyerKey();
  // Each rail is imported on demand, because the libraries take most of the start-up time.
  const { checkUsdcOffer, payInUsdc } = await import('./lib/pay/pay-usdc.ts');
  const offer = await checkUsdcOffer(url, header, ceilingUnits, say);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  await print(await payInUsdc(url, offer, privateKey, say));
}

async function buyInSats({ url, ceilingMsat, dryRun }: Order, offer: LightningOffer, body: string): Promise<void> {
  const { buyOverLightning, checkOffer } = await import('./lib/lightning/lightning-buy.ts');
  const payer = dryRun ? null : await findPayer();
  if (!dryRun && !payer) throw new UsageError('a payer is needed: NWC_PAYER, LND_PAYER_URL or PAYER_URL');
  try {
    const { invoice, network } = checkOffer(url, offer, ceilingMsat);
    say(`asked:   ${formatSats(invoice.amountMsat)} on ${network} to ${Buffer.from(invoice.payee).toString('hex')}`);
    if (offer.description) say(`for:     ${printable(offer.description)}`);
    const price = statedPrice(body);
    if (price) say(`price:   ${printable(price.priceUsd)} USD, at ${printable(price.btcUsd)} USD a bitcoin`);
    if (payer === null) return say('dry run: this would be paid; nothing was paid');
    await buyOverLightning({ url, offer, ceilingMsat, payer, outputs: { say, deliver: print } });
  } finally {
    payer?.close();
  }
}

async function redeem(file: string): Promise<void> {
  const { redeemProof } = await import('./lib/lightning/lightning-buy.ts');
  const path = resolve(file);
  const proof = await readProof(path);
  const payer = proof.preimage === null ? await findPayer() : null;
  try {
    await redeemProof(proof, path, payer, { say, deliver: print });
  } finally {
    payer?.close();
  }
}

async function main(): Promise<void> {
  const given = parse();
  if (given.values.help) return console.log(USAGE);
  if (given.values.proof !== undefined) {
    if (given.positionals.length > 0) throw new UsageError('--proof takes no URL: the file names it');
    return redeem(given.values.proof);
  }
  const order = readOrder(given);
  const challenge = await ask(order.url);
  if (challenge === null) return;
  const offer = order.rail === 'usdc' ? null : readLightningOffer(challenge.header);
  if (offer) return buyInSats(order, offer, challenge.body);
  if (order.rail === 'lightning') throw new Error('nothing on offer is paid over Lightning');
  await buyInUsdc(order, challenge);
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
