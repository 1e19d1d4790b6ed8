import { resolve } from 'node:path';
import { type LightningOffer, readLightningOffer, statedPrice } from './lib/lightning/lightning-offer.ts';
import type { LightningPayer } from './lib/lightning/lightning-payer.ts';
import { readProof } from './lib/lightning/lightning-proof-file.ts';
import { formatSats } from './lib/lightning/sats.ts';
import { isAskedResource } from './lib/pay/asked-resource.ts';
import { readChallenge } from './lib/pay/challenge.ts';
import { readChannelOffer, readOffer } from './lib/pay/offer.ts';
import { type ChannelOrder, type Order, parse, readOrder, USAGE, UsageError } from './lib/pay/pay-options.ts';
import { printable } from './lib/pay/printable.ts';

interface Challenge {
  readonly header: string;
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

function checkResource(url: URL, header: string): void {
  const { resource } = readChallenge(header);
  if (isAskedResource(url, resource.url)) return;
  throw new Error(`the offer is for ${printable(resource.url)}, which is not what was asked for; nothing was signed`);
}

async function buyInUsdc({ url, ceilingUnits, dryRun }: Order, { header }: Challenge): Promise<void> {
  checkResource(url, header);
  const privateKey = dryRun ? null : buyerKey();
  const offer = readOffer(header);
  // Each rail is imported on demand, because the libraries take most of the start-up time.
  const { checkUsdcOffer, payInUsdc } = await import('./lib/pay/pay-usdc.ts');
  await checkUsdcOffer(url, offer, ceilingUnits, say);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  await print(await payInUsdc(url, offer, privateKey, say));
}

async function useChannel(
  order: Order,
  { directory, maxDeposit, refund }: ChannelOrder,
  header: string,
): Promise<void> {
  const { url, ceilingUnits, dryRun } = order;
  checkResource(url, header);
  const privateKey = dryRun ? null : buyerKey();
  const offer = readChannelOffer(header);
  if (!offer) throw new Error('nothing on offer is paid over a payment channel (batch-settlement); nothing was signed');
  const { checkUsdcOffer } = await import('./lib/pay/pay-usdc.ts');
  const { channelTermsText, payByChannel, refundChannel } = await import('./lib/pay/pay-by-channel.ts');
  if (!refund) await checkUsdcOffer(url, offer, ceilingUnits, say);
  if (!refund) say(`channel: ${channelTermsText(offer)}`);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  const terms = { privateKey, directory, maxDeposit, rpcUrl: process.env.RPC_URL || null };
  if (refund) return refundChannel(url, offer, terms, say);
  await print(await payByChannel(url, offer, terms, say));
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
  if (order.channel) return useChannel(order, order.channel, challenge.header);
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
