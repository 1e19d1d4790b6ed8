import { isUtf8 } from 'node:buffer';
import { join, resolve } from 'node:path';
import { openBuyer, settingsFrom } from './buyer.ts';
import { isAskedResource, readChallenge } from './challenges.ts';
import { buyerKey, type Env, KeyError, NO_KEY } from './keys.ts';
import { type Order, parse, readOrder, USAGE, UsageError } from './pay-options.ts';
import type { Answer, Buyer, BuyerSettings, Limits, Outcome, Payment, Quote } from './port.ts';
import { printable } from './printable.ts';
import { sellerOf } from './seller.ts';
import { readChannelOffer } from './ways/channel-offer.ts';

// `percall pay`: reads the order, buys over the port (port.ts), and tells how it ended.

/** The command's side of the buyer: where it runs, and where its words go. */
export interface Surroundings {
  readonly env: Env;
  /** The current folder, as a full path. */
  readonly folder: string;
  /** Shows a line that is not part of the answer. */
  readonly say: (line: string) => void;
  /** Delivers the answer. */
  readonly deliver: (body: Buffer) => Promise<void>;
  /** Shows how long a payment has been waited for, on a terminal; null takes it away. */
  readonly progress?: (text: string | null) => void;
}

/**
 * 0 answered, 1 failed before paying, 2 usage, 3 refused, 4 paid and no answer yet, 5 not charged by the seller's word.
 */
export type ExitCode = 0 | 1 | 2 | 3 | 4 | 5;

/** Runs the command with these words. A failure is told to the buyer, its reason in the last line. */
export async function payCommand(args: readonly string[], at: Surroundings): Promise<ExitCode> {
  try {
    const given = parse(args);
    if (given.values.help) {
      await at.deliver(Buffer.from(`${USAGE}\n`));
      return 0;
    }
    return await run(readOrder(given, at.env), at);
  } catch (error) {
    const usage = error instanceof UsageError || error instanceof KeyError;
    const cause = error instanceof Error && error.cause instanceof Error ? ` (${error.cause.message})` : '';
    // The reason is the last line, where a reader looks first.
    if (error instanceof UsageError) at.say(`${USAGE}\n`);
    at.say(`${usage ? 'usage' : 'failed'}: ${error instanceof Error ? error.message : error}${cause}`);
    return usage ? 2 : 1;
  }
}

async function run(order: Order, at: Surroundings): Promise<ExitCode> {
  const settings = settingsOf(order, at);
  if (order.channel?.refund) return refund(order, settings, at);
  const { url, method, body } = order;
  const call = { kind: 'http', method, url, body } as const;
  const buyer = openBuyer(settings);
  try {
    if (order.dryRun) return await tellQuote(await buyer.price(call, limitsOf(order, at.say)), order, at);
    return await buyAndTell(buyer, order, at);
  } finally {
    buyer.close();
  }
}

function settingsOf(order: Order, { env, folder }: Surroundings): BuyerSettings {
  const { dataDir: usual, ...settings } = settingsFrom({ ...env, DISCOVERY_URL: undefined });
  const dataDir = resolve(folder, order.dataDir ?? usual);
  const directory = order.channel?.directory;
  const own = directory ? { ...env, CHANNEL_DIR: resolve(folder, directory) } : env;
  return { ...settings, env: own, dataDir, btcUsd: order.btcUsd, discovery: order.discovery };
}

function limitsOf(order: Order, say: (line: string) => void): Limits {
  const { ceilingUnits, ceilingMsat, rail, protocol, channel, gateway } = order;
  return {
    maxUnits: ceilingUnits,
    maxMsat: ceilingMsat,
    rail,
    protocol,
    via: channel ? 'channel' : gateway ? 'gateway' : null,
    shown: null,
    maxDeposit: channel?.maxDeposit ?? 0n,
    confirm: null,
    say,
  };
}

/** How often the time is shown that a payment has been waited for, in milliseconds. */
const SHOW_MS = 1000;

async function buyAndTell(buyer: Buyer, order: Order, at: Surroundings): Promise<ExitCode> {
  const { url, method, body } = order;
  const beganMs = Date.now();
  const seconds = () => Math.round((Date.now() - beganMs) / 1000);
  const showing = setInterval(
    () => at.progress?.(`waiting for the answer and its settlement, ${seconds()} s`),
    SHOW_MS,
  );
  const say = (line: string): void => {
    at.progress?.(null);
    at.say(line);
  };
  let outcome: Outcome;
  try {
    outcome = await buyer.pay({ kind: 'http', method, url, body }, limitsOf(order, say));
  } finally {
    clearInterval(showing);
    at.progress?.(null);
  }
  if (outcome.kind !== 'answered') return tellFailure(outcome, order, at);
  const { answer, payment } = outcome;
  const json = { outcome: 'answered', ...answerJson(answer), payment: payment && paymentJson(payment) };
  try {
    await at.deliver(order.json ? jsonLine(json) : answer.body);
  } catch (error) {
    if (payment === null) throw error;
    const message = `the answer could not be delivered: ${error instanceof Error ? error.message : error}; it is kept`;
    return tellFailure({ kind: 'unanswered', message, payment }, { ...order, json: false }, at);
  }
  outcome.delivered();
  return 0;
}

/** What a person reads of an outcome without an answer, and what it means for a program. */
const TOLD = {
  refused: { code: 3, word: 'refused' },
  unanswered: { code: 4, word: 'unanswered' },
  uncharged: { code: 5, word: 'not charged, says the seller' },
  failed: { code: 1, word: 'failed' },
} as const;

async function tellFailure(
  outcome: Exclude<Outcome, { kind: 'answered' }> | Extract<Quote, { kind: 'refused' | 'failed' }>,
  { json }: Order,
  { say, deliver }: Surroundings,
): Promise<ExitCode> {
  const { kind, message } = outcome;
  const isUsage = kind === 'refused' && outcome.reason === 'no-wallet';
  if (json) {
    const payment = 'payment' in outcome ? paymentJson(outcome.payment) : null;
    await deliver(jsonLine({ outcome: kind, reason: kind === 'refused' ? outcome.reason : null, message, payment }));
  }
  if (kind === 'unanswered') {
    say('open:    run the same command again: it goes on with this payment, and pays nothing more');
    say(`         percall wallet drop ${outcome.payment.id} gives it up instead; it stays counted`);
  }
  say(`${isUsage ? 'usage' : TOLD[kind].word}: ${message}`);
  return isUsage ? 2 : TOLD[kind].code;
}

async function tellQuote(quote: Quote, order: Order, at: Surroundings): Promise<ExitCode> {
  if (quote.kind === 'refused' || quote.kind === 'failed') return tellFailure(quote, order, at);
  if (quote.kind === 'free') {
    await at.deliver(order.json ? jsonLine({ outcome: 'free', ...answerJson(quote.answer) }) : quote.answer.body);
    return 0;
  }
  // The line of the channel has told the deposit.
  const { amount, deposit: _, ...price } = quote.price;
  if (order.json) await at.deliver(jsonLine({ outcome: 'priced', ...price, ...amountJson(amount) }));
  at.say(`dry run: this would be paid; nothing was ${amount.msat === null ? 'signed' : 'paid'}`);
  return 0;
}

const jsonLine = (value: object): Buffer => Buffer.from(`${JSON.stringify(value)}\n`);

const answerJson = ({ status, contentType, body }: Answer) => ({
  status,
  contentType,
  ...(isUtf8(body) ? { body: body.toString('utf8') } : { bodyBase64: body.toString('base64') }),
});

const amountJson = ({ units, msat }: Payment['amount']) => ({
  units: units?.toString() ?? null,
  msat: msat?.toString() ?? null,
});

/** A payment as JSON: amounts are decimal text of base units. */
export const paymentJson = ({ amount, ...payment }: Payment) => ({ ...payment, ...amountJson(amount) });

/** Asks for the rest of a channel. It pays nothing, so nothing is counted. */
async function refund(order: Order, settings: BuyerSettings, { say }: Surroundings): Promise<ExitCode> {
  const { url, channel } = order;
  const reply = await sellerOf({ kind: 'http', method: 'GET', url, body: null }).send();
  const header = reply.headers.get('payment-required') ?? '';
  const offer = header === '' ? null : readChannelOffer(header);
  if (!offer) throw new Error('nothing on offer is paid over a payment channel (batch-settlement); nothing was signed');
  const { resource } = readChallenge(header);
  if (!isAskedResource(url, resource.url))
    throw new Error(`the offer is for ${printable(resource.url)}, which is not what was asked for; nothing was signed`);
  const privateKey = buyerKey(settings.env);
  if (privateKey === null) throw new KeyError(NO_KEY);
  const { refundChannel } = await import('./ways/channel.ts');
  const directory = settings.env.CHANNEL_DIR ?? join(settings.dataDir, 'channels');
  const terms = { privateKey, directory, maxDeposit: channel?.maxDeposit ?? 0n, rpcUrl: settings.rpcUrl };
  await refundChannel(url, offer, terms, say);
  return 0;
}
