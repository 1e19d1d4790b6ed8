import { randomBytes } from 'node:crypto';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { DEPOSIT_COLLECTOR, depositNonce, SETTLEMENT } from '../../../src/payment/channels/scheme.ts';
import { type ChannelBuyer, channelBuyer } from '../channels/channel-buyer.ts';
import { channelOnChain } from '../channels/channel-reads.ts';
import { untilChannelsAreOffered } from '../channels/offered.ts';
import { newBuyer, transfersOf } from '../usdc/buyer.ts';
import { newOutsider } from '../usdc/outsider.ts';
import { newKey } from '../usdc/payments.ts';
import {
  BEHIND_BLOCKS,
  behind,
  channelIs,
  deniedPayment,
  expired,
  farAhead,
  hourAhead,
  inventedBalance,
  inventedLogs,
  inventedPayment,
  type Terms,
  together,
} from './lies.ts';
import type { Lie } from './lying-provider.ts';
import {
  drain,
  type Order,
  type Presented,
  presentTimes,
  presentUntilSent,
  type Stage,
  untilServed,
} from './lying-world.ts';

// What a lying provider may try with payments that use an authorization: plain ones and deposits. Each step acts as
// buyers and liar.

/** Price of a call, and what a deposit holds, in base units. */
export const PRICE = 1000n;
export const DEPOSIT = 1_000_000n;
/** Presentations of an attacker while the lie lasts. */
const TRIES = 4;

/** A payment by an authorization. */
interface Sale {
  readonly order: Order;
  readonly terms: Terms;
  /** What its price of USDC is to the payer. */
  readonly units: bigint;
  /** What else a liar says who invents the payment. */
  readonly aftermath: Lie;
  /** Calls that the invented payment would pay for, too. */
  readonly later: readonly Order[];
  /** Sends it as a third party; null where the tests do not. */
  submit: (() => Promise<unknown>) | null;
}

/** Makes a sale of a new payer who has its money, or has none. */
type MakeSale = (stage: Stage, isFunded: boolean) => Promise<Sale>;
type Step = (stage: Stage, make: MakeSale) => Promise<void>;

/** A plain payment. */
const plain: MakeSale = async ({ network, origin, path }, isFunded) => {
  const payment = await (await newBuyer(network, isFunded ? PRICE : 0n)).sign(origin(), path);
  const { authorization: terms, header } = payment;
  const hasMoved = async () => (await transfersOf(network, payment)) > 0;
  const submit = async () => (await newOutsider(network)).submit(terms);
  return { order: { path, header, hasMoved }, terms, units: PRICE, aftermath: {}, later: [], submit };
};

/** A channel of a new payer, which is known to nobody. */
export async function newChannel({ network, origin, path }: Stage, units: bigint) {
  const { privateKey, address } = newKey();
  if (units > 0n) await network.fundUsdc(address, units);
  const entry = await untilChannelsAreOffered(origin() + path);
  return { privateKey, buyer: channelBuyer(privateKey, entry, randomBytes(32)) };
}

/** A call that is paid by a voucher. The true chain has its money where the channel holds it. */
export function voucherOrder({ network, path }: Stage, buyer: ChannelBuyer, max: bigint): Order {
  const hasMoved = async () => (await channelOnChain(network, buyer.id)).balance >= max;
  return { path: `${path}?tag=${max}`, header: buyer.voucher(max), hasMoved };
}

/** A call that is paid by a deposit. */
export function depositOrder({ network, path }: Stage, buyer: ChannelBuyer): Order & { readonly salt: string } {
  const header = buyer.deposit(DEPOSIT, PRICE);
  const { payload } = JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
  const hasMoved = async () => (await channelOnChain(network, buyer.id)).balance >= DEPOSIT;
  return { path, header, hasMoved, salt: payload.deposit.authorization.erc3009Authorization.salt };
}

/** A deposit into a new channel. */
const deposit: MakeSale = async (stage, isFunded) => {
  const { buyer } = await newChannel(stage, isFunded ? DEPOSIT : 0n);
  const { salt, ...order } = depositOrder(stage, buyer);
  const terms = {
    from: buyer.config.payer,
    to: hexToBytes(DEPOSIT_COLLECTOR),
    passedTo: hexToBytes(SETTLEMENT),
    value: DEPOSIT,
    nonce: depositNonce(buyer.id, BigInt(salt)),
    mark: hexToBytes(salt),
  };
  const aftermath = channelIs(buyer.id, { balance: DEPOSIT });
  const later = [2n, 3n].map((calls) => voucherOrder(stage, buyer, calls * PRICE));
  return { order, terms, units: DEPOSIT, aftermath, later, submit: null };
};

/** A buyer with money buys a call, while the lie lasts. */
async function buyHonestly(stage: Stage, make: MakeSale): Promise<void> {
  await untilServed(stage, stage.honest((await make(stage, true)).order));
}

/**
 * Sells what follows an attack. Then the lie ends, and the last answer must be as the chain is, also after a restart.
 */
async function afterwards(stage: Stage, attack: Presented, later: readonly Order[]): Promise<void> {
  const calls = later.map(stage.attack);
  for (const call of calls) await presentTimes(call, 2);
  stage.liar.lie(null);
  await presentTimes(attack, TRIES);
  if (calls.length === 0) return;
  await stage.restart();
  for (const call of calls) await presentTimes(call, 2);
}

/** The money of a payment is gone when its transaction is mined. The liar says otherwise. */
async function drained(stage: Stage, make: MakeSale, lie: (terms: Terms, more: Lie) => Lie): Promise<void> {
  const { network, liar } = stage;
  const { order, terms, aftermath, later } = await make(stage, true);
  const attack = stage.attack(order);
  await network.pauseMining();
  const { waiting } = await presentUntilSent(stage, attack, terms);
  await drain(stage, terms.from);
  liar.lie(lie(terms, aftermath));
  await network.resumeMining();
  await waiting;
  await presentTimes(attack, TRIES);
  await buyHonestly(stage, make);
  await afterwards(stage, attack, later);
}

/** A payer without money buys. The liar says that it has some, and what the lie adds. */
async function poor(stage: Stage, make: MakeSale, lie: (terms: Terms, more: Lie) => Lie): Promise<void> {
  const { order, terms, units, aftermath, later } = await make(stage, false);
  const attack = stage.attack(order);
  stage.liar.lie(together(inventedBalance(terms.from, units), lie(terms, aftermath)));
  await presentTimes(attack, 2 * TRIES);
  await buyHonestly(stage, make);
  await afterwards(stage, attack, later);
}

/** A payment of an honest buyer that the liar denies, once it is sent: before, a denial only refuses. */
async function denied(stage: Stage, make: MakeSale, lie: (terms: Terms) => Lie): Promise<void> {
  const { network, liar } = stage;
  const { order, terms } = await make(stage, true);
  const one = stage.honest(order);
  await network.pauseMining();
  const { waiting } = await presentUntilSent(stage, one, terms);
  liar.lie(lie(terms));
  await network.resumeMining();
  await waiting;
  await untilServed(stage, one);
}

/** A third party sends the payment while its handler runs, so only the logs show it. */
async function sentByAnother(stage: Stage, make: MakeSale): Promise<void> {
  const { latch } = stage;
  const { order, submit } = await make(stage, true);
  if (!submit) return;
  const one = stage.honest(order);
  latch.close();
  const started = latch.started();
  const first = one.present();
  // A refusal before the handler is an answer, too.
  const isRunning = await Promise.race([started.then(() => true), first.then(() => false)]);
  if (isRunning) await submit();
  latch.open();
  await first;
  await untilServed(stage, one);
}

/**
 * The payment waits for its block while the liar says that it has expired. A restart makes the service read the
 * evidence.
 */
async function expires(stage: Stage, make: MakeSale): Promise<void> {
  const { network, liar } = stage;
  const { order, terms } = await make(stage, true);
  const one = stage.honest(order);
  await network.pauseMining();
  const { waiting } = await presentUntilSent(stage, one, terms);
  liar.lie(expired(terms));
  await waiting;
  await stage.restart();
  await presentTimes(one, TRIES);
  await network.resumeMining();
  await untilServed(stage, one);
}

/** Buyers that had their money before the liar fell behind. */
async function fallsBehind(stage: Stage, make: MakeSale): Promise<void> {
  const sales = [await make(stage, true), await make(stage, true), await make(stage, true)];
  await stage.network.mine(BEHIND_BLOCKS + 20);
  stage.liar.lie(behind);
  for (const { order } of sales) await untilServed(stage, stage.honest(order));
}

async function isAhead(stage: Stage, make: MakeSale, lie: Lie): Promise<void> {
  stage.liar.lie(lie);
  await buyHonestly(stage, make);
  await sentByAnother(stage, make);
}

/** Calls where nobody lies, with whose times the others are compared. */
const COMPARED = 9;

const STEPS: Readonly<Record<string, Step>> = {
  nothing: async (stage, make) => {
    for (let calls = 0; calls < COMPARED; calls++) await buyHonestly(stage, make);
  },
  'receipt of a drained payer': (stage, make) => drained(stage, make, inventedPayment),
  'receipt of a poor payer': (stage, make) => poor(stage, make, inventedPayment),
  'logs of a transaction that never was': (stage, make) =>
    drained(stage, make, (terms, more) => together(more, inventedLogs(terms, 'paid'))),
  balance: (stage, make) => poor(stage, make, () => ({})),
  'denial by a receipt': (stage, make) => denied(stage, make, deniedPayment),
  'denial by logs': (stage, make) => denied(stage, make, (terms) => inventedLogs(terms, 'cancelled')),
  expired: expires,
  'two minutes behind': fallsBehind,
  'head an hour ahead': (stage, make) => isAhead(stage, make, hourAhead),
  'head of 2^52': (stage, make) => isAhead(stage, make, farAhead),
};

/** What runs in a stage, by the name of its lie. */
export type Lies = Readonly<Record<string, (stage: Stage) => Promise<void>>>;

const liesOf = (make: MakeSale): Lies =>
  Object.fromEntries(Object.entries(STEPS).map(([name, step]) => [name, (stage: Stage) => step(stage, make)]));

/** The lies about plain payments. */
export const EXACT: Lies = liesOf(plain);
/** The lies about deposits. In an invented one, a channel has money. */
export const DEPOSITS: Lies = liesOf(deposit);

/**
 * The lies about payments that a facilitator settles. It also names a transaction that never was, which the liar then
 * shows.
 */
export const FACILITATED: Lies = {
  ...EXACT,
  'hash of a transaction that never was': async (stage) => {
    const { order, terms } = await plain(stage, true);
    const attack = stage.attack(order);
    stage.facilitator.fault('claims a hash that never was');
    stage.liar.lie(inventedPayment(terms));
    await presentTimes(attack, TRIES);
    stage.facilitator.fault(null);
    await buyHonestly(stage, plain);
  },
};
