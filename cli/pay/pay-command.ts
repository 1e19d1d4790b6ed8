import { resolve } from 'node:path';
import { statedPrice } from '../lightning/lightning-offer.ts';
import type { LightningPayer } from '../lightning/lightning-payer.ts';
import { readProof } from '../lightning/lightning-proof-file.ts';
import { formatSats } from '../lightning/sats.ts';
import { isAskedResource } from './asked-resource.ts';
import { readChallenge } from './challenge.ts';
import { checkUsdcOffer } from './check-usdc-offer.ts';
import { type EvmOffer, evmValidity } from './mpp-evm-offer.ts';
import { readChannelOffer, readOffer } from './offer.ts';
import { type ChannelOrder, type Order, parse, readOrder, USAGE, UsageError } from './pay-options.ts';
import { ANSWER_WITHIN_MS } from './present-payment.ts';
import { printable } from './printable.ts';
import { foreseenRefusal, problemDetail } from './problem-detail.ts';
import { checkSatsPrice, checkUsdcPrice } from './spending.ts';
import { formatUsdc } from './usdc.ts';
import { pickWay, type Way } from './ways-to-pay.ts';

/** A 402. */
interface Asked {
  readonly headers: Headers;
  readonly body: string;
}

type Env = Readonly<Record<string, string | undefined>>;

/** The buyer's side of the command: where it runs, and where its words go. */
export interface Buyer {
  readonly env: Env;
  /** The current folder, as a full path. */
  readonly folder: string;
  /** Shows a line that is not part of the answer. */
  readonly say: (line: string) => void;
  /** Delivers the answer. */
  readonly deliver: (body: Buffer) => Promise<void>;
}

function buyerKey(env: Env): `0x${string}` {
  const key = env.BUYER_PRIVATE_KEY ?? '';
  if (!/^0x[0-9a-fA-F]{64}$/.test(key)) throw new UsageError('BUYER_PRIVATE_KEY must hold 0x and 64 hex digits');
  return key as `0x${string}`;
}

async function findPayer(env: Env): Promise<LightningPayer | null> {
  const { payerFrom } = await import('../lightning/payer-from-env.ts');
  try {
    return await payerFrom(env);
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** Asks without paying. Returns the 402, or null when the answer was free (and is printed). */
async function ask(url: URL, { say, deliver }: Buyer): Promise<Asked | null> {
  // Does not follow redirects, because then the payment would be made out to a third party.
  const answer = await fetch(url, { redirect: 'manual', signal: AbortSignal.timeout(ANSWER_WITHIN_MS) });
  if (answer.ok) {
    say(`free: status ${answer.status}, nothing to pay`);
    await deliver(Buffer.from(await answer.arrayBuffer()));
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

/** Throws where the seller says that it would refuse the request although it is paid. */
function checkNotRefused({ body }: Asked): void {
  const refusal = foreseenRefusal(body);
  if (refusal !== null) throw new Error(`${printable(refusal).replace(/\.$/, '')}; nothing was signed`);
}

function checkResource(url: URL, header: string): void {
  const { resource } = readChallenge(header);
  if (isAskedResource(url, resource.url)) return;
  throw new Error(`the offer is for ${printable(resource.url)}, which is not what was asked for; nothing was signed`);
}

async function buyInUsdc(order: Order, header: string, { env, say, deliver }: Buyer): Promise<void> {
  const { url, dryRun } = order;
  checkResource(url, header);
  const privateKey = dryRun ? null : buyerKey(env);
  const offer = readOffer(header);
  await checkUsdcOffer(order, offer, say);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  // Each way to pay is imported on demand, after the checks: its libraries take most of the start-up time.
  const { payInUsdc } = await import('./pay-usdc.ts');
  await deliver(await payInUsdc(url, offer, privateKey, say));
}

async function buyOverMpp(order: Order, offer: EvmOffer, { env, say, deliver }: Buyer): Promise<void> {
  const { url, discovery, ceilingUnits, dryRun } = order;
  const privateKey = dryRun ? null : buyerKey(env);
  // Throws for an expired offer before anything is shown.
  evmValidity(offer, Math.floor(Date.now() / 1000));
  say(`asked:   ${formatUsdc(offer.amountUnits)} on ${offer.network} to ${offer.payTo}, over MPP`);
  if (offer.description) say(`for:     ${printable(offer.description)}`);
  await checkUsdcPrice({ url, discovery, say }, offer.amountUnits, ceilingUnits, offer.asset);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  const { payMppEvm } = await import('./pay-mpp-evm.ts');
  await deliver(await payMppEvm(url, offer, privateKey, say));
}

async function useChannel(
  order: Order,
  { directory, maxDeposit, refund }: ChannelOrder,
  header: string,
  { env, folder, say, deliver }: Buyer,
): Promise<void> {
  const { url, dryRun } = order;
  checkResource(url, header);
  const privateKey = dryRun ? null : buyerKey(env);
  const offer = readChannelOffer(header);
  if (!offer) throw new Error('nothing on offer is paid over a payment channel (batch-settlement); nothing was signed');
  const { channelTermsText, payByChannel } = await import('./pay-by-channel.ts');
  const { refundChannel } = await import('./refund-channel.ts');
  if (!refund) await checkUsdcOffer(order, offer, say);
  if (!refund) say(`channel: ${channelTermsText(offer)}`);
  if (privateKey === null) return say('dry run: this would be paid; nothing was signed');
  const terms = { privateKey, directory: resolve(folder, directory), maxDeposit, rpcUrl: env.RPC_URL || null };
  if (refund) return refundChannel(url, offer, terms, say);
  await deliver(await payByChannel(url, offer, terms, say));
}

type InSats = Extract<Way, { kind: 'x402-lightning' | 'invoice' }>;

async function buyInSats(order: Order, { kind, offer }: InSats, body: string, buyer: Buyer): Promise<void> {
  const { env, folder, say } = buyer;
  const { url, discovery, ceilingMsat, dryRun } = order;
  const { buyOverLightning, checkAskedInvoice, checkOffer } = await import('../lightning/lightning-buy.ts');
  const payer = dryRun ? null : await findPayer(env);
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
    await checkSatsPrice({ url, discovery, say }, invoice.amountMsat);
    if (payer === null) return say('dry run: this would be paid; nothing was paid');
    await buyOverLightning({ check, ceilingMsat, payer, folder, outputs: buyer });
  } finally {
    payer?.close();
  }
}

async function redeem(file: string, buyer: Buyer): Promise<void> {
  const { redeemProof } = await import('../lightning/lightning-buy.ts');
  const path = resolve(buyer.folder, file);
  const proof = await readProof(path);
  const payer = proof.preimage === null ? await findPayer(buyer.env) : null;
  try {
    await redeemProof(proof, path, payer, buyer);
  } finally {
    payer?.close();
  }
}

async function serve(args: readonly string[], buyer: Buyer): Promise<void> {
  const given = parse(args);
  if (given.values.help) return buyer.deliver(Buffer.from(`${USAGE}\n`));
  if (given.values.proof !== undefined) {
    if (given.positionals.length > 0) throw new UsageError('--proof takes no URL: the file names it');
    return redeem(given.values.proof, buyer);
  }
  const order = readOrder(given, buyer.env);
  const asked = await ask(order.url, buyer);
  if (asked === null) return;
  if (!order.channel?.refund) checkNotRefused(asked);
  if (order.channel) return useChannel(order, order.channel, asked.headers.get('payment-required') ?? '', buyer);
  const way = pickWay(asked.headers, order);
  if (way.kind === 'x402-usdc') return buyInUsdc(order, way.header, buyer);
  if (way.kind === 'mpp-usdc') return buyOverMpp(order, way.offer, buyer);
  return buyInSats(order, way, asked.body, buyer);
}

/** Runs the command with these words of its command line. Returns the exit code; a failure is told to the buyer, its reason in the last line. */
export async function payCommand(args: readonly string[], buyer: Buyer): Promise<0 | 1 | 2> {
  try {
    await serve(args, buyer);
    return 0;
  } catch (error) {
    const usage = error instanceof UsageError;
    const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
    // The reason is the last line, where a reader looks first.
    if (usage) buyer.say(`${USAGE}\n`);
    buyer.say(`${usage ? 'usage' : 'failed'}: ${error instanceof Error ? error.message : error}${cause}`);
    return usage ? 2 : 1;
  }
}
