import { resolve } from 'node:path';
import { statedPrice } from './lib/lightning/lightning-offer.ts';
import type { LightningPayer } from './lib/lightning/lightning-payer.ts';
import { readProof } from './lib/lightning/lightning-proof-file.ts';
import { formatSats } from './lib/lightning/sats.ts';
import { isAskedResource } from './lib/pay/asked-resource.ts';
import { readChallenge } from './lib/pay/challenge.ts';
import type { EvmOffer } from './lib/pay/mpp-evm-offer.ts';
import { readChannelOffer, readOffer } from './lib/pay/offer.ts';
import { type ChannelOrder, type Order, parse, readOrder, USAGE, UsageError } from './lib/pay/pay-options.ts';
import { printable } from './lib/pay/printable.ts';
import { problemDetail } from './lib/pay/problem-detail.ts';
import { formatUsdc } from './lib/pay/usdc.ts';
import { pickWay, type Way } from './lib/pay/ways-to-pay.ts';

/** A 402. */
interface Asked {
  readonly headers: Headers;
  readonly body: string;
}

/** Prints to standard error. Standard output holds only the answer. */
const say = (line: string): void => console.error(line);

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

/** Asks without paying. Returns the 402, or null when the answer was free (and is printed). */
async function ask(url: URL): Promise<Asked | null> {
  // Does not follow redirects, because then the payment would be made out to a third party.
  const answer = await fetch(url, { redirect: 'manual' });
  if (answer.ok) {
    say(`free: status ${answer.status}, nothing to pay`);
    await print(Buffer.from(await answer.arrayBuffer()));
    return null;
  }
  const { headers } = answer;
  // Only a 402 asks for money. Sellers send WWW-Authenticate with other answers too.
  const asks = headers.has('payment-required') || headers.has('www-authenticate');
  if (answer.status === 402 && asks) return { headers, body: await answer.text() };
  const reason = problemDetail(await answer.text().catch(() => ''));
  if (reason !== null) throw new Error(`status ${answer.status}: ${printable(reason)}`);
  const where = headers.get('location');
  throw new Error(
    `status ${answer.status} without a challenge of x402, L402 or MPP${where ? `, moved to ${printable(where)}` : ''}`,
  );
}

async function print(body: Buffer): Promise<void> {
  await new Promise<void>((written, reject) => {
    process.stdout.write(body, (error) => (error ? reject(error) : written()));
  });
}

function checkResource(url: URL, header: string): void {
  const { resource } = readChallenge(header);
  if (isAskedResource(url, resource.url)) return;
  throw new Error(`the offer is for ${printable(resource.url)}, which is not what was asked for; nothing was signed`);
}

async function buyInUsdc(order: Order, header: string): Promise<void> {
  const { url, dryRun } = order;
  checkResource(url, header);
  const privateKey = dryRun ? null : buyerKey();
  const offer = readOffer(header);
  // Each rail is imported on demand, because the libraries take most of the start-up time.
  const { checkUsdcOffer, payInUsdc } = await import('./lib/pay/pay-usdc.ts');
  await checkUsdcOffer(order, offer, say);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  await print(await payInUsdc(url, offer, privateKey, say));
}

async function buyOverMpp({ url, discovery, ceilingUnits, dryRun }: Order, offer: EvmOffer): Promise<void> {
  const privateKey = dryRun ? null : buyerKey();
  const { evmValidity, payMppEvm } = await import('./lib/pay/pay-mpp-evm.ts');
  const { checkUsdcPrice } = await import('./lib/pay/spending.ts');
  evmValidity(offer, Math.floor(Date.now() / 1000));
  say(`asked:   ${formatUsdc(offer.amountUnits)} on ${offer.network} to ${offer.payTo}, over MPP`);
  if (offer.description) say(`for:     ${printable(offer.description)}`);
  await checkUsdcPrice({ url, discovery, say }, offer.amountUnits, ceilingUnits, offer.asset);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  await print(await payMppEvm(url, offer, privateKey, say));
}

async function useChannel(
  order: Order,
  { directory, maxDeposit, refund }: ChannelOrder,
  header: string,
): Promise<void> {
  const { url, dryRun } = order;
  checkResource(url, header);
  const privateKey = dryRun ? null : buyerKey();
  const offer = readChannelOffer(header);
  if (!offer) throw new Error('nothing on offer is paid over a payment channel (batch-settlement); nothing was signed');
  const { checkUsdcOffer } = await import('./lib/pay/pay-usdc.ts');
  const { channelTermsText, payByChannel, refundChannel } = await import('./lib/pay/pay-by-channel.ts');
  if (!refund) await checkUsdcOffer(order, offer, say);
  if (!refund) say(`channel: ${channelTermsText(offer)}`);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  const terms = { privateKey, directory, maxDeposit, rpcUrl: process.env.RPC_URL || null };
  if (refund) return refundChannel(url, offer, terms, say);
  await print(await payByChannel(url, offer, terms, say));
}

type InSats = Extract<Way, { kind: 'x402-lightning' | 'invoice' }>;

async function buyInSats(order: Order, { kind, offer }: InSats, body: string): Promise<void> {
  const { url, discovery, ceilingMsat, dryRun } = order;
  const { buyOverLightning, checkAskedInvoice, checkOffer } = await import('./lib/lightning/lightning-buy.ts');
  const payer = dryRun ? null : await findPayer();
  if (!dryRun && !payer) throw new UsageError('a payer is needed: NWC_PAYER, LND_PAYER_URL or PAYER_URL');
  const check = () =>
    kind === 'invoice' ? checkAskedInvoice(url, offer, ceilingMsat) : checkOffer(url, offer, ceilingMsat);
  try {
    const { invoice, network } = check();
    const over = kind === 'invoice' ? `, over ${offer.protocol.toUpperCase()}` : '';
    const payee = Buffer.from(invoice.payee).toString('hex');
    say(`asked:   ${formatSats(invoice.amountMsat)} on ${network} to ${payee}${over}`);
    if (offer.description) say(`for:     ${printable(offer.description)}`);
    const price = statedPrice(body);
    if (price) say(`price:   ${printable(price.priceUsd)} USD, at ${printable(price.btcUsd)} USD a bitcoin`);
    const { checkSatsPrice } = await import('./lib/pay/spending.ts');
    await checkSatsPrice({ url, discovery, say }, invoice.amountMsat);
    if (payer === null) return say('dry run: this would be paid; nothing was paid');
    await buyOverLightning({ check, ceilingMsat, payer, outputs: { say, deliver: print } });
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
  const order = readOrder(given, process.env);
  const asked = await ask(order.url);
  if (asked === null) return;
  if (order.channel) return useChannel(order, order.channel, asked.headers.get('payment-required') ?? '');
  const way = pickWay(asked.headers, order);
  if (way.kind === 'x402-usdc') return buyInUsdc(order, way.header);
  if (way.kind === 'mpp-usdc') return buyOverMpp(order, way.offer);
  return buyInSats(order, way, asked.body);
}

try {
  await main();
} catch (error) {
  const usage = error instanceof UsageError;
  const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
  // The reason is the last line, where a reader looks first.
  if (usage) say(`${USAGE}\n`);
  say(`${usage ? 'usage' : 'failed'}: ${error instanceof Error ? error.message : error}${cause}`);
  process.exitCode = usage ? 2 : 1;
}
