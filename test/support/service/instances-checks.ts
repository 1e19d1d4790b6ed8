import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { balanceOf, type Payment } from '../usdc/buyer.ts';
import { type Instances, leaderOf, untilOneLeads } from './instances.ts';
import type { Answer } from './service.ts';
import { presentUntilServed, until, usesOf } from './workers.ts';

/** Returns when the ledger has no open payment. */
export function untilNothingIsOpen(service: Pick<Instances, 'ask'>): Promise<void> {
  return until('nothing is open', async () => {
    const text = "SELECT id FROM usdc_payments WHERE state NOT IN ('settled', 'failed') LIMIT 1";
    return (await service.ask(text)).length === 0;
  });
}

/** Expects the seller's balance to equal the ledger's sales. */
export async function expectBalancedLedger(network: EmbeddedNetwork, service: Pick<Instances, 'ask'>, context: string) {
  const text = "SELECT coalesce(sum(amount), 0) AS sum FROM usdc_payments WHERE state = 'settled'";
  const [row] = await service.ask<{ sum: string }>(text);
  expect(await balanceOf(network, network.seller), context).toBe(BigInt(row?.sum ?? -1));
}

/**
 * The buyer presents the same payment until it is served. By then it was charged exactly once, and the answer equals the one received before, if any.
 * Returns whether the chain had the payment before the buyer came back.
 */
export async function checkSale(
  network: EmbeddedNetwork,
  origin: string,
  { path, payment, received }: { path: string; payment: Payment; received: Answer | null },
  context: string,
): Promise<boolean> {
  const before = await usesOf(network, payment);
  expect(before, context).toBeLessThanOrEqual(1);
  if (received?.status === 200) expect(before, context).toBe(1);
  const again = await presentUntilServed(origin, path, payment).catch((error: Error) => {
    throw new Error(`${error.message}; ${context}`);
  });
  expect(await usesOf(network, payment), context).toBe(1);
  if (received?.status === 200) expect(again.body, context).toBe(received.body);
  return before === 1;
}

/** Waits until all instances report ready. */
export function untilAllAreReady({ origins }: Pick<Instances, 'origins'>): Promise<void> {
  return until('all instances are ready', async () => {
    const answers = await Promise.all(origins.map((origin) => fetch(`${origin}/readyz`).catch(() => null)));
    await Promise.all(answers.map((answer) => answer?.body?.cancel()));
    return answers.every((answer) => answer?.status === 200);
  });
}

/** Gives the lease to the first instance, whose connection a test controls. */
export async function untilTheFirstLeads(service: Instances): Promise<void> {
  await untilAllAreReady(service);
  if ((await untilOneLeads(service)) === 1) {
    await service.instances[1]?.stop();
    await until('the first one leads', async () => (await leaderOf(service)) === 0);
    await service.instances[1]?.start();
  }
  await expect.poll(() => leaderOf(service)).toBe(0);
}
