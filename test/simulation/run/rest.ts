import type { Desk } from '../actors/desk.ts';
import type { HonestBuyers } from '../actors/honest.ts';
import { CLIENTS, runAs } from '../engine/owner.ts';
import { mend } from '../moves/trouble-makers.ts';
import { readLedgers, type SaleRow } from '../promises/ledger.ts';
import { connectionsOf } from '../service/sqlite.ts';
import type { Hex } from '../world/chain/keys.ts';
import type { World } from '../world/world.ts';

/** A process is up again after some seconds; a leader is found again after the lease of the last one. */
const START_MS = 40_000;
/** Everything that is open is looked at again within this time: the longest pauses, of a remote rail and of a provider that was of another chain, are five minutes. */
const ENDS_MS = 700_000;
/** A new leader has the lease of the last one by then, and has looked at what that one left open. */
const RESUMED_MS = 60_000;
/** A provider that was of another chain is left alone for so long. */
const LEFT_ALONE_MS = 300_000;
/** No scenario lets a charge wait for longer, and a round of claims takes some seconds. */
const OLDEST_CHARGE_MS = 500_000;
const STEP_MS = 5_000;
const OPEN = ['reserved', 'settling', 'unknown'];

/** Ends everything that is wrong with the world. */
function heal(world: World): void {
  world.scheduler.callOff();
  const { providers, facilitator, gateway, lightning, sources, ledger, chain, accounts, catalogue, instances } = world;
  for (const one of [providers, facilitator, gateway, lightning, sources]) one.heal();
  Object.assign(ledger.mood, { how: 'well', percent: 100 });
  chain.setFee(20_000_000_000n);
  catalogue.setMoody(false);
  chain.change((view) => {
    view.set('paused', false);
    view.set(`blocked ${accounts.seller.address}`, false);
    view.set(`balance ${accounts.relayer.address}`, 10n ** 20n);
  });
  for (const instance of instances) {
    for (const db of connectionsOf(instance.owner(), '.db')) mend(db);
    instance.wake();
  }
}

/** Rows that have not ended, of those that nobody but the service can end. */
export function openRows(world: World): string[] {
  const { evidence, scheduler, scenario, gateway } = world;
  const isUsed = (rail: SaleRow['rail'], payer: Hex, nonce: Hex): boolean =>
    rail !== 'gateway'
      ? evidence.of(payer, nonce) !== null
      : gateway.transfers().some((one) => one.from === payer && one.nonce === nonce);
  const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
  return readLedgers(world).flatMap(({ sales, openOperations }) => [
    ...openOperations.map((kind) => `a ${kind} of channels has not ended`),
    ...sales
      .filter(({ state }) => OPEN.includes(state))
      // What was handed to somebody else may still be settled there, and is rightly unknown while it is good.
      .filter(({ rail, payer, nonce, validBefore, state, hash }) => {
        const isHandedOver = hash !== null && (rail === 'gateway' || scenario.settler !== 'relayer');
        return !(state === 'unknown' && isHandedOver && validBefore > now && !isUsed(rail, payer, nonce));
      })
      .map(
        ({ rail, nonce, state, reason }) => `${rail} ${nonce.slice(0, 10)} is ${state}${reason ? ` (${reason})` : ''}`,
      ),
  ]);
}

/** Lets the world come to rest: it heals, time passes, everything open ends. */
export async function comeToRest(world: World, desk: Desk, honest: HonestBuyers): Promise<void> {
  const { scheduler, instances } = world;
  honest.stop();
  heal(world);
  for (const instance of instances) void instance.boot();
  await scheduler.runWhile(() => !instances.every((one) => one.isUp()), scheduler.nowMs() + START_MS);
  const untilMs = scheduler.nowMs() + ENDS_MS;
  for (;;) {
    await scheduler.runUntil(scheduler.nowMs() + STEP_MS);
    if (openRows(world).length === 0 && isAnswered(desk)) return;
    if (scheduler.nowMs() >= untilMs) return;
  }
}

/** Stops a service that sells from channels as a signal does, and starts it again: it claims everything before it ends. */
export async function claimAtStop(world: World, unclaimed: () => readonly string[]): Promise<void> {
  const { scenario, scheduler, instances, providers } = world;
  if (!scenario.channels) return;
  const mayLackChain = providers.wereUpset(scheduler.nowMs() - LEFT_ALONE_MS, scheduler.nowMs());
  let stopped = false;
  void Promise.all(instances.map((one) => one.stop())).then(() => {
    stopped = true;
  });
  await scheduler.runWhile(() => !stopped, scheduler.nowMs() + START_MS);
  for (const instance of instances) void instance.boot();
  await scheduler.runWhile(() => !instances.every((one) => one.isUp()), scheduler.nowMs() + START_MS);
  // A claim whose end the stop did not wait for is ended by the next start.
  for (const untilMs = scheduler.nowMs() + RESUMED_MS; scheduler.nowMs() < untilMs && openRows(world).length > 0; )
    await scheduler.runUntil(scheduler.nowMs() + 1000);
  // An instance of several gives its lease up before it stops, and one that leaves its providers alone cannot claim. Charges then wait for their age.
  const latestMs = scheduler.nowMs() + (instances.length > 1 || mayLackChain ? OLDEST_CHARGE_MS : 0);
  while (scheduler.nowMs() < latestMs && unclaimed().length > 0) await scheduler.runUntil(scheduler.nowMs() + 1000);
}

/** Whether every request has its answer, those without a payment too. */
export const isAnswered = (desk: Desk): boolean => desk.unanswered().length === 0;

/** Runs something of the clients' and lets time pass until it is done. False when it was not done in time. */
export async function letHappen(world: World, work: () => Promise<void>, mostMs: number): Promise<boolean> {
  let done = false;
  let failure: unknown = null;
  void runAs(CLIENTS, work)
    .catch((error: unknown) => {
      failure = error;
    })
    .finally(() => {
      done = true;
    });
  await world.scheduler.runWhile(() => !done, world.scheduler.nowMs() + mostMs);
  if (failure !== null) throw failure;
  return done;
}
