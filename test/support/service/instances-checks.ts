import { expect } from 'vitest';
import type { EmbeddedNetwork } from '../../../src/embedded/network.ts';
import { balanceOf, type Payment } from '../usdc/buyer.ts';
import { presentUntilServed, until, usesOf } from './crew.ts';
import type { Instances } from './instances.ts';
import type { Answer } from './service.ts';

/** Returns when nothing in the ledger is open. */
export function untilNothingIsOpen(service: Pick<Instances, 'ask'>): Promise<void> {
  return until('nothing is open', async () => {
    const text = "SELECT id FROM usdc_payments WHERE state NOT IN ('settled', 'failed') LIMIT 1";
    return (await service.ask(text)).length === 0;
  });
}

/** What the seller has is what the ledger says that he must have. */
export async function expectEvenBooks(network: EmbeddedNetwork, service: Pick<Instances, 'ask'>, context: string) {
  const text = "SELECT coalesce(sum(amount), 0) AS sum FROM usdc_payments WHERE state = 'settled'";
  const [told] = await service.ask<{ sum: string }>(text);
  expect(await balanceOf(network, network.seller), context).toBe(BigInt(told?.sum ?? -1));
}

/**
 * The buyer comes back with the same payment until he is served. He has been charged once by then and not more than once before, and what
 * he hears is what he has heard. Returns whether the chain had the money before he came.
 */
export async function judgeSale(
  network: EmbeddedNetwork,
  origin: string,
  { path, payment, heard }: { path: string; payment: Payment; heard: Answer | null },
  context: string,
): Promise<boolean> {
  const before = await usesOf(network, payment);
  expect(before, context).toBeLessThanOrEqual(1);
  if (heard?.status === 200) expect(before, context).toBe(1);
  const again = await presentUntilServed(origin, path, payment).catch((error: Error) => {
    throw new Error(`${error.message}; ${context}`);
  });
  expect(await usesOf(network, payment), context).toBe(1);
  if (heard?.status === 200) expect(again.body, context).toBe(heard.body);
  return before === 1;
}

/** Waits until all tell that they are ready. */
export function untilAllAreReady({ origins }: Pick<Instances, 'origins'>): Promise<void> {
  return until('all instances are ready', async () => {
    const answers = await Promise.all(origins.map((origin) => fetch(`${origin}/readyz`).catch(() => null)));
    await Promise.all(answers.map((answer) => answer?.body?.cancel()));
    return answers.every((answer) => answer?.status === 200);
  });
}
