import { randomUUID } from 'node:crypto';
import { receiptReference } from './challenges.ts';
import { answerOf, askAndCheck, causeOf, Failed, LIGHTNING } from './checks.ts';
import { addressIn, buyerKey, type Env, KeyError, NO_KEY, NO_PAYER } from './keys.ts';
import { formatSats, formatUsdc } from './money.ts';
import type { LightningPayer } from './payers/payer.ts';
import type { Answer, Call, Limits, Outcome, Payment, Price, Quote, Refusal } from './port.ts';
import { printable } from './printable.ts';
import { CutOff, isAnswer, isBusy, present, type Reply, reasonOf, saysUncharged, transactionIn } from './seller.ts';
import type { Buying, Shop } from './shop.ts';
import { sweepExpired } from './wallet/chain.ts';
import { callHashOf, type Row, shown, usdcValue, type Wallet } from './wallet/record.ts';
import { channelOfferIn } from './ways/channel-offer.ts';
import { signEntry } from './ways/exact.ts';
import { proofHeader } from './ways/l402.ts';
import { type InvoicePlan, payInvoice } from './ways/lightning.ts';
import { signMpp } from './ways/mpp.ts';
import { refusedOffer } from './ways/pick.ts';
import { BadOffer, type Offer, type Plan, Refused } from './ways/way.ts';

// One call, from its question to its answer.
// 1. Give back what has expired unused, and look for an open payment of this call. One is there: go on at 7.
// 2. Ask without a payment. A free answer ends it.
// 3. Choose the way to pay.
// 4. Check it: the resource, the recipient, the listed price, the limits, the rate.
// 5. Ask the person, where the call says so.
// 6. Count it against every budget, and keep all that will be signed, in one transaction.
// 7. Sign it, or pay the invoice; keep what presents it.
// 8. Present it until its answer is final.
// 9. Keep the answer, and forget what could present the payment. The reader's word that it was delivered ends it.
// A crash between two steps leaves a row that says which of them comes next.

/** Buys one answer. Throws for a broken record alone. */
export async function payCall(call: Call, limits: Limits, shop: Shop): Promise<Outcome> {
  let payer: Promise<LightningPayer | null> | null = null;
  try {
    const seller = shop.sellerOf(call);
    const body = call.kind === 'http' ? (call.body?.bytes ?? null) : null;
    const buying: Buying = {
      call,
      seller,
      callHash: callHashOf(seller.name, body),
      limits,
      shop,
      key: keyIn(shop.settings.env),
      me: `${shop.holder.name} ${randomUUID()}`,
      payer: () => {
        payer ??= payerIn(shop);
        return payer;
      },
    };
    await sweep(shop, limits.say);
    for (;;) {
      const open = shop.wallet.openOf(buying.callHash, payersOf(buying));
      const outcome = open ? await goOn(open, buying) : await buy(buying);
      if (outcome !== 'anew') return outcome;
    }
  } catch (error) {
    if (error instanceof Refused) return { kind: 'refused', reason: error.reason, message: error.message };
    if (error instanceof Failed) return { kind: 'failed', message: error.message };
    throw error;
  } finally {
    // A wallet that could not be opened has nothing to close.
    await (payer as Promise<LightningPayer | null> | null)?.then((one) => one?.close()).catch(() => {});
  }
}

/** Asks and checks as `payCall` does, and stops before anybody is asked or anything is kept. */
export async function priceCall(call: Call, limits: Limits, shop: Shop): Promise<Quote> {
  try {
    const seller = shop.sellerOf(call);
    const key = keyIn(shop.settings.env);
    const payer = () => Promise.resolve(null);
    const checked = await askAndCheck({ call, seller, callHash: '', limits, shop, key, me: '', payer });
    if ('free' in checked) return { kind: 'free', answer: checked.free };
    await checked.offer.plan({ address: null, now: shop.now() });
    return { kind: 'priced', price: checked.price };
  } catch (error) {
    if (error instanceof Refused) return { kind: 'refused', reason: error.reason, message: error.message };
    if (error instanceof Failed) return { kind: 'failed', message: error.message };
    if (error instanceof BadOffer) return { kind: 'refused', reason: 'bad-offer', message: error.message };
    throw error;
  }
}

function keyIn(env: Env): `0x${string}` | null {
  try {
    return buyerKey(env);
  } catch (error) {
    if (error instanceof KeyError) throw new Refused('no-wallet', error.message);
    throw error;
  }
}

async function payerIn({ payerFrom, settings }: Shop): Promise<LightningPayer | null> {
  try {
    return await payerFrom(settings.env);
  } catch (error) {
    throw new Refused('no-wallet', error instanceof Error ? error.message : String(error));
  }
}

/** Whose open payments are this call's: the key's and those over Lightning; without a key everybody's. */
const payersOf = ({ key }: Buying): readonly string[] =>
  key === null ? [] : [addressIn(key).toLowerCase(), LIGHTNING];

/** Step 1: what the chain shows as unused is no spending any more. Its failure costs nothing but the room. */
async function sweep({ wallet, settings, now }: Shop, say: (line: string) => void): Promise<void> {
  const isDue = wallet.open().some(({ expiresAt }) => expiresAt !== null && expiresAt < now());
  if (settings.rpcUrl === null || (!isDue && wallet.budgets.list().length === 0)) return;
  await sweepExpired(wallet, settings.rpcUrl).catch((error: Error) => {
    say(`warning: expired payments were not looked up: ${printable(error.message)}`);
  });
}

/** Steps 2 to 8 for a call without an open payment. `anew`: another process has begun to pay for it. */
async function buy(buying: Buying): Promise<Outcome | 'anew'> {
  const { limits, shop, key, seller, callHash } = buying;
  const checked = await askAndCheck(buying);
  if ('free' in checked) return { kind: 'answered', answer: checked.free, payment: null, delivered: () => {} };
  const { offer, price, rate } = checked;
  const inSats = offer.rail === LIGHTNING;
  if (!inSats && key === null) throw new Refused('no-wallet', NO_KEY);
  const payer = inSats ? await buying.payer() : null;
  if (inSats && !payer) throw new Refused('no-wallet', NO_PAYER);
  const address = key && addressIn(key);
  const done = inSats ? 'paid' : 'signed';
  const planned = async () => {
    const plan = await planNow(offer, { address, now: shop.now() }, done);
    const { channel } = plan;
    const of = { host: seller.host, network: offer.network, asset: offer.asset, payer: address ?? '' };
    if (channel) refuseBy(shop.wallet.deposits.objectionTo({ ...of, channel }));
    return plan;
  };
  if (limits.confirm) {
    // An offer that cannot be paid asks nobody: its recipient and its network may be the seller's words.
    await planned();
    if (!(await limits.confirm(price))) throw new Refused('declined', 'the payment was declined');
  }
  // Time has passed since the offer was shown.
  const plan = await planned();
  const { amount, content } = withFee(price, plan, { payer, limits, rate });
  const counted = shop.wallet.count(
    {
      call: seller.name,
      host: seller.host,
      callHash,
      payer: inSats ? LIGHTNING : (address ?? '').toLowerCase(),
      way: offer.way,
      amount,
      network: offer.network,
      asset: offer.asset,
      payTo: offer.payTo,
      reference: plan.reference,
      expiresAt: plan.expiresAt,
      plan: content,
      channel: plan.channel,
    },
    { rate, payers: payersOf(buying), me: buying.me },
  );
  if (counted.kind === 'over') throw new Refused('above-budget', `${counted.message}; nothing was ${done}`);
  if (counted.kind === 'taken') {
    const of = plan.channel ? 'another call over this channel' : 'an earlier payment of this invoice';
    const text = `${of} waits for its answer: ${counted.row.call}; run that one again, or give it up`;
    throw new Refused('channel-busy', `${text}; nothing was ${done}`);
  }
  if (counted.kind === 'open') return 'anew';
  return finish(counted.row, buying, { isResumed: false });
}

function refuseBy(objection: { readonly reason: Refusal; readonly message: string } | null): void {
  if (objection) throw new Refused(objection.reason, objection.message);
}

async function planNow(offer: Offer, at: { address: `0x${string}` | null; now: number }, done: string): Promise<Plan> {
  try {
    return await offer.plan(at);
  } catch (error) {
    return refusedOffer(error, done);
  }
}

/** Of the network's fee that a payer may be told to stay below: enough for a usual route, in millisatoshis. */
const FEE_MSAT = 5000n;
const FEE_PERCENT = 1n;

interface FeeTerms {
  readonly payer: LightningPayer | null;
  readonly limits: Limits;
  readonly rate: bigint | null;
}

/** The amount that is counted, with the network's fee where the payer is told a limit, and the plan with that limit. */
function withFee({ amount }: Price, { content }: Plan, { payer, limits, rate }: FeeTerms) {
  if (amount.msat === null) return { amount, content };
  const usual = FEE_MSAT + (amount.msat * FEE_PERCENT) / 100n;
  const room = limits.maxMsat - amount.msat;
  const fee = !payer?.limitsFee ? 0n : usual < room ? usual : room;
  const msat = amount.msat + fee;
  const units = amount.units === null || rate === null ? amount.units : amount.units + usdcValue(fee, rate);
  return { amount: { units, msat }, content: { ...content, feeLimitMsat: (payer?.limitsFee ? fee : room).toString() } };
}

/**
 * In milliseconds: how often a call that another process pays for is looked at, and how often a held row is renewed.
 */
const LOOK_MS = 100;
const RENEW_MS = 5000;
/** How long this process waits for another one: longer than a payment is presented. In looks. */
const LOOKS = 6000;

/** Goes on with an open payment, once no other process works on it. `anew`: it has ended without an answer. */
async function goOn(open: Row, buying: Buying): Promise<Outcome | 'anew'> {
  const { wallet, delay } = buying.shop;
  for (let look = 0; look < LOOKS; look++) {
    const row = wallet.byId(open.id);
    if (!row) return 'anew';
    const isHere = row.state === 'arrived' || row.state === 'answered';
    if (isHere && row.answer) return answered(row, row.answer, buying);
    if (row.state !== 'counted' && row.state !== 'signed') return 'anew';
    if (wallet.hold(row.id, buying.me)) {
      // It may have moved on before it was held.
      const held = wallet.byId(row.id);
      const isOpen = held?.state === 'counted' || held?.state === 'signed';
      if (!held || !isOpen) continue;
      buying.limits.say(
        `open:    this call was paid before, at ${new Date(row.at * 1000).toISOString()}; going on with that payment`,
      );
      return finish(held, buying, { isResumed: true });
    }
    await delay(LOOK_MS);
  }
  const row = wallet.byId(open.id) ?? open;
  return { kind: 'unanswered', message: 'another process works on this call still', payment: shown(row) };
}

const answered = (row: Row, answer: Answer, { limits, shop }: Buying): Outcome => ({
  kind: 'answered',
  answer,
  payment: shown(row),
  delivered() {
    try {
      shop.wallet.answer(row.id);
    } catch (error) {
      // Then the same call gets the same answer once more.
      limits.say(`warning: ${failureOf(error)}`);
    }
  },
});

const failureOf = (error: unknown): string =>
  `the record of payments failed: ${printable(error instanceof Error ? error.message : String(error))}`;

/** Steps 7 to 9 for a row that this process holds. */
async function finish(row: Row, buying: Buying, how: { isResumed: boolean }): Promise<Outcome | 'anew'> {
  const { wallet } = buying.shop;
  const renewing = setInterval(() => {
    try {
      wallet.hold(row.id, buying.me);
    } catch {
      // A renewal that is missed harms nothing. The next step on the record says what is wrong with it.
    }
  }, RENEW_MS);
  renewing.unref();
  try {
    if (row.way === 'channel') return await payOverChannel(row, buying);
    const signed = row.signed ?? (await signNow(row, buying, how));
    if (signed === 'anew') return 'anew';
    if ('kind' in signed) return signed as Outcome;
    return await presentNow(row, signed as Readonly<Record<string, string>>, buying);
  } catch (error) {
    if (error instanceof Refused) throw error;
    // The row says how far it came.
    const message = `${failureOf(error)}; run the same call again once it works`;
    return { kind: 'unanswered', message, payment: shown(row) };
  } finally {
    clearInterval(renewing);
    letGo(row, buying);
  }
}

/** Lets other calls work on a row. Where the record fails, the lease ends by itself. */
function letGo({ id }: Row, { me, shop }: Buying): void {
  try {
    shop.wallet.release(id, me);
  } catch {
    // What comes next on the record says what is wrong with it.
  }
}

/** Step 7: what presents the payment, kept. An outcome where it was not made. */
async function signNow(
  row: Row,
  buying: Buying,
  { isResumed }: { isResumed: boolean },
): Promise<Readonly<Record<string, string>> | Outcome | 'anew'> {
  const { wallet, now } = buying.shop;
  if (row.amount.msat !== null) return payNow(row, buying, isResumed);
  if (row.expiresAt !== null && row.expiresAt <= now()) {
    // Nobody has seen it, so the call may be paid anew. It stays counted until the chain shows that it was not used.
    wallet.drop(row.id);
    return 'anew';
  }
  const { key, limits } = buying;
  if (key === null) throw new Refused('no-wallet', NO_KEY);
  const headers = row.way === 'mpp' ? await signMpp(row.plan, key) : await signEntry(row.plan, key);
  wallet.sign(row.id, headers);
  limits.say(`signed:  nonce ${row.reference}, until ${row.expiresAt} (Unix seconds)`);
  return headers;
}

/** Step 7 over Lightning. */
async function payNow(
  row: Row,
  buying: Buying,
  isResumed: boolean,
): Promise<Readonly<Record<string, string>> | Outcome | 'anew'> {
  const { wallet, now } = buying.shop;
  const payer = await buying.payer();
  if (!payer) throw new Refused('no-wallet', `${NO_PAYER}: the one that was asked to pay knows the outcome`);
  const plan = row.plan as InvoicePlan & { readonly feeLimitMsat: string };
  const paid = await payInvoice(plan, payer, { feeLimitMsat: BigInt(plan.feeLimitMsat), mayBePaid: isResumed, now });
  if (paid.kind === 'not paid') {
    wallet.giveBack(row.id);
    if (isResumed && now() >= plan.expiresAt) return 'anew';
    throw new Refused('not-paid', `${payer.name} did not pay: ${paid.reason}; nothing was paid`);
  }
  if (paid.kind === 'open') {
    const what = `whether it was paid is open (payment hash ${plan.paymentHash})`;
    const message = `${paid.reason}; ${what}: run the same call again, which asks the wallet and never pays twice`;
    return unanswered(row, message, buying);
  }
  const headers = proofHeader(plan.proof, paid.preimage);
  wallet.sign(row.id, headers);
  buying.limits.say(`paid:    ${formatSats(row.amount.msat ?? 0n)} by ${payer.name}, payment hash ${plan.paymentHash}`);
  return headers;
}

function unanswered(row: Row, message: string, { shop }: Buying): Outcome {
  shop.wallet.note(row.id, message);
  return { kind: 'unanswered', message, payment: paymentOf(row, shop.wallet) };
}

const paymentOf = (row: Row, wallet: Wallet): Payment => shown(wallet.byId(row.id) ?? row);

/** The transaction, transfer id or payment hash that an answer's receipt names; null without one for this payment. */
function receiptFor({ way, reference }: Row, headers: Headers): string | null {
  if (way === 'l402') return reference;
  const named = way === 'mpp' || way === 'mpp-lightning' ? receiptReference(headers) : transactionIn(headers);
  return way === 'lightning' || way === 'mpp-lightning' ? (named === reference ? named : null) : named;
}

/** After a payment in sats a failure that is not the buyer's fault is worth another try: the proof stays valid. */
const isWorthAgainInSats = (status: number): boolean => status === 409 || status === 429 || status >= 500;

/** Steps 8 and 9. */
async function presentNow(row: Row, signed: Readonly<Record<string, string>>, buying: Buying): Promise<Outcome> {
  const { seller, limits, shop } = buying;
  const inSats = row.amount.msat !== null;
  const isWorthAgain = inSats ? isWorthAgainInSats : isBusy;
  const openText = inSats
    ? `it is paid (payment hash ${row.reference}) and is not paid again: run the same call again`
    : `the authorization can be charged until ${row.expiresAt} (Unix seconds), its nonce is ${row.reference}`;
  /** What answers with these headers say of the payment. */
  const outcomeBy = (...answers: Headers[]): string => {
    const transaction = answers.map((headers) => receiptFor(row, headers)).find((one) => one !== null);
    if (inSats || transaction === undefined) return openText;
    return `by its receipt it is paid, transaction ${printable(transaction)}; its nonce is ${row.reference}`;
  };
  let final: Awaited<ReturnType<typeof present>>;
  try {
    final = await present(seller, signed, { say: limits.say, delay: shop.delay, isWorthAgain });
  } catch (error) {
    if (error instanceof CutOff) return unanswered(row, `${error.message}; ${outcomeBy(error.headers)}`, buying);
    const cause = error instanceof Error ? printable(error.message) : '';
    return unanswered(row, `no answer; ${openText} (${cause})`, buying);
  }
  const { reply, cutOff } = final;
  if (isAnswer(reply)) return sayAndKeep(row, reply, buying);
  const failure = `status ${reply.status}: ${reasonOf(reply)}`;
  if (cutOff) {
    const message = `${failure}; an earlier answer was cut off; ${outcomeBy(reply.headers, cutOff)}`;
    return unanswered(row, message, buying);
  }
  const message = `${failure}; ${outcomeBy(reply.headers)}${afterExpiry(row, buying)}`;
  if (inSats || !saysUncharged(reply)) return unanswered(row, message, buying);
  shop.wallet.note(row.id, message);
  return { kind: 'uncharged', message, payment: paymentOf(row, shop.wallet) };
}

/** What to do about an authorization that has expired, where nobody can look whether it was used. */
function afterExpiry({ id, expiresAt, amount }: Row, { shop }: Buying): string {
  if (amount.msat !== null || expiresAt === null || expiresAt > shop.now()) return '';
  const how = 'with RPC_URL it is looked up, and paid anew if it was not used';
  return `. It has expired: ${how}; percall wallet drop ${id} gives it up`;
}

/** This machine, as a URL names it. */
const LOOPBACK = /^(?:localhost|127(?:\.\d+){3}|\[::1\])(?::\d+)?$/;

/** This machine is not held to what it was: a demonstration's seller is new each time. */
const isPinnable = (host: string): boolean => !LOOPBACK.test(host);

/** From now on this host is paid there. */
function pinFor(row: Row, wallet: Wallet): void {
  if (isPinnable(row.host)) wallet.pin(row.host, row);
}

/** Step 9. A record that fails costs nobody the answer: the payment waits still, and may be presented once more. */
function keepAnswer(row: Row, reply: Reply, transaction: string | null, buying: Buying): Outcome {
  const { wallet } = buying.shop;
  const answer = answerOf(reply);
  try {
    wallet.arrive(row.id, answer, transaction === null ? null : printable(transaction));
    if (row.way !== 'l402' && row.way !== 'mpp-lightning') pinFor(row, wallet);
    return answered(wallet.byId(row.id) ?? row, answer, buying);
  } catch (error) {
    buying.limits.say(`warning: ${failureOf(error)}`);
    return answered(row, answer, buying);
  }
}

/** Tells what the answer's receipt says, and keeps the answer. */
function sayAndKeep(row: Row, reply: Reply, buying: Buying): Outcome {
  const { limits } = buying;
  const transaction = receiptFor(row, reply.headers);
  if (row.amount.msat !== null) {
    if (transaction === null) limits.say('the answer came without a receipt for this payment');
  } else {
    const price = formatUsdc(row.amount.units ?? 0n);
    const until = `${row.expiresAt} (Unix seconds)`;
    const open = `the authorization can be charged until ${until}, its nonce is ${row.reference}`;
    if (transaction !== null) limits.say(`paid:    ${price}, transaction ${printable(transaction)}`);
    else limits.say(`paid:    ${price} was authorized, but the answer came without a receipt; ${open}`);
  }
  return keepAnswer(row, reply, transaction, buying);
}

/** Steps 7 to 9 over a payment channel, whose client signs anew after a correction of its record. */
async function payOverChannel(row: Row, buying: Buying): Promise<Outcome> {
  const { key, limits, seller, shop } = buying;
  const { wallet, settings } = shop;
  if (key === null) throw new Refused('no-wallet', NO_KEY);
  const { ChannelFailure, payByChannel } = await import('./ways/channel.ts');
  const offer = channelOfferIn(row.plan);
  const terms = {
    privateKey: key,
    directory: shop.channelFolder,
    maxDeposit: limits.maxDeposit,
    rpcUrl: settings.rpcUrl,
  };
  const book = {
    kept: row.signed,
    count(channel: string, upTo: bigint): void {
      const over = wallet.countVoucher(row.id, channel, { upTo, price: offer.amountUnits });
      if (over !== null) throw new Refused('above-budget', `${over}; nothing was signed`);
    },
    countDeposit: (units: bigint, channel: string): void =>
      refuseBy(
        wallet.deposits.count({ ...row, channel, units, most: limits.maxDeposit, isPinned: isPinnable(row.host) }),
      ),
    keep: (headers: Readonly<Record<string, string>>): void => wallet.sign(row.id, headers),
  };
  try {
    const { reply, transaction } = await payByChannel(seller, offer, terms, {
      say: limits.say,
      delay: shop.delay,
      book,
    });
    return keepAnswer(row, reply, transaction, buying);
  } catch (error) {
    if (!(error instanceof ChannelFailure)) throw error;
    const cause = error.cause instanceof Error && !(error.cause instanceof Refused) ? causeOf(error) : '';
    // An endpoint's address may hold a key, and the chain's client repeats it in its errors.
    const said = `${error.message}${cause}`;
    const message = settings.rpcUrl === null ? said : said.replaceAll(settings.rpcUrl, 'RPC_URL');
    if (error.kind === 'unsigned') {
      wallet.uncount(row.id);
      throw error.cause instanceof Refused ? error.cause : new Refused('bad-offer', message);
    }
    if (error.kind === 'open') return unanswered(row, message, buying);
    wallet.refuse(row.id, message);
    return { kind: 'uncharged', message, payment: paymentOf(row, wallet) };
  }
}
