import { newBuyer, type Payment } from '../usdc/buyer.ts';
import { newOutsider } from '../usdc/outsider.ts';
import {
  BEHIND_BLOCKS,
  behind,
  deniedPayment,
  expired,
  farAhead,
  hourAhead,
  inventedBalance,
  inventedLogs,
  inventedPayment,
  together,
} from './lies.ts';
import type { Lie } from './lying-provider.ts';
import { drain, type Presented, presentTimes, type Stage, untilFinal, untilSent, untilServed } from './lying-world.ts';

// What a lying provider may try with plain payments. Each step acts as buyer and liar; the stage judges it afterwards.

const PRICE = 1000n;
/** Presentations of an attacker while the lie lasts. */
const TRIES = 4;

async function sign({ network, origin, path }: Stage, units: bigint): Promise<Payment> {
  return (await newBuyer(network, units)).sign(origin(), path);
}

/** A buyer with money buys a call, while the lie lasts. */
async function buyHonestly(stage: Stage): Promise<void> {
  await untilServed(stage, stage.honest(await sign(stage, PRICE)));
}

/** Ends the lie; the last answer of the attack must be as the chain is. */
async function afterwards(stage: Stage, attack: Presented): Promise<void> {
  stage.liar.lie(null);
  await untilFinal(stage, attack);
}

/** The money of a payment is gone when its transaction is mined. The liar says otherwise. */
async function drained(stage: Stage, lie: (terms: Payment['authorization']) => Lie): Promise<void> {
  const { network, liar } = stage;
  const payment = await sign(stage, PRICE);
  const attack = stage.attack(payment);
  await network.pauseMining();
  const first = attack.present();
  await untilSent(stage, payment);
  await drain(stage, payment.authorization.from);
  liar.lie(lie(payment.authorization));
  await network.resumeMining();
  await first;
  await presentTimes(attack, TRIES);
  await buyHonestly(stage);
  await afterwards(stage, attack);
}

/** A payer without money buys. The liar says that it has some, and what the lie adds. */
async function poor(stage: Stage, lie: (terms: Payment['authorization']) => Lie): Promise<void> {
  const payment = await sign(stage, 0n);
  const { authorization } = payment;
  const attack = stage.attack(payment);
  stage.liar.lie(together(inventedBalance(authorization.from, PRICE), lie(authorization)));
  await presentTimes(attack, 3 * TRIES);
  await buyHonestly(stage);
  await afterwards(stage, attack);
}

/** A payment of an honest buyer that the liar denies, once it is sent: before, a denial only refuses. */
async function denied(stage: Stage, lie: (terms: Payment['authorization']) => Lie): Promise<void> {
  const { network, liar } = stage;
  const payment = await sign(stage, PRICE);
  const one = stage.honest(payment);
  await network.pauseMining();
  const first = one.present();
  await untilSent(stage, payment);
  liar.lie(lie(payment.authorization));
  await network.resumeMining();
  await first;
  await untilServed(stage, one);
}

/** A third party sends the payment while its handler runs, so only the logs show it. */
async function sentByAnother(stage: Stage): Promise<void> {
  const { network, latch } = stage;
  const payment = await sign(stage, PRICE);
  const outsider = await newOutsider(network);
  const one = stage.honest(payment);
  latch.close();
  const started = latch.started();
  const first = one.present();
  // A refusal before the handler is an answer, too.
  const isRunning = await Promise.race([started.then(() => true), first.then(() => false)]);
  if (isRunning) await outsider.submit(payment.authorization);
  latch.open();
  await first;
  await untilServed(stage, one);
}

/** The payment waits for its block while the liar says that it has expired. A restart makes the service read the evidence. */
async function expires(stage: Stage): Promise<void> {
  const { network, liar } = stage;
  const payment = await sign(stage, PRICE);
  const one = stage.honest(payment);
  await network.pauseMining();
  const first = one.present();
  await untilSent(stage, payment);
  liar.lie(expired(payment.authorization));
  await first;
  await stage.restart();
  await presentTimes(one, TRIES);
  await network.resumeMining();
  await untilServed(stage, one);
}

/** Buyers that had their money before the liar fell behind. */
async function fallsBehind(stage: Stage): Promise<void> {
  const payments = [await sign(stage, PRICE), await sign(stage, PRICE), await sign(stage, PRICE)];
  await stage.network.mine(BEHIND_BLOCKS + 20);
  stage.liar.lie(behind);
  for (const payment of payments) await untilServed(stage, stage.honest(payment));
}

async function isAhead(stage: Stage, lie: Lie): Promise<void> {
  stage.liar.lie(lie);
  await buyHonestly(stage);
  await sentByAnother(stage);
}

/** The steps of each lie. */
export const EXACT: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  nothing: buyHonestly,
  'receipt of a drained payer': (stage) => drained(stage, inventedPayment),
  'receipt of a poor payer': (stage) => poor(stage, inventedPayment),
  'logs of a transaction that never was': (stage) => drained(stage, (terms) => inventedLogs(terms, 'paid')),
  balance: (stage) => poor(stage, () => ({})),
  'denial by a receipt': (stage) => denied(stage, deniedPayment),
  'denial by logs': (stage) => denied(stage, (terms) => inventedLogs(terms, 'cancelled')),
  expired: expires,
  'two minutes behind': fallsBehind,
  'head an hour ahead': (stage) => isAhead(stage, hourAhead),
  'head of 2^52': (stage) => isAhead(stage, farAhead),
};
