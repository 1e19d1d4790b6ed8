import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openBuyer, type Surroundings } from '../../../cli/buyer.ts';
import type { Buyer, BuyerSettings, Call, Limits, Outcome } from '../../../cli/port.ts';

/** A key that holds nothing anywhere. */
export const KEY = `0x${'11'.repeat(32)}` as const;

/** Limits that bound nothing, so that a budget or a check is what refuses. */
export const LIMITS: Limits = {
  maxUnits: 10n ** 12n,
  maxMsat: 10n ** 15n,
  rail: null,
  protocol: null,
  via: null,
  shown: null,
  maxDeposit: 0n,
  confirm: null,
  say: () => {},
};

/** A new data folder, which is deleted when the test ends. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'percall-buyer-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Opens a buyer over a folder for the rest of the test. It waits for nothing between two attempts. */
export function buyerIn(
  folder: string,
  settings: Partial<BuyerSettings> = {},
  surroundings: Partial<Surroundings> = {},
): Buyer {
  const usual = { env: { BUYER_PRIVATE_KEY: KEY }, rpcUrl: null, btcUsd: null, discovery: null };
  const delay = () => new Promise<void>((next) => void setImmediate(next));
  const buyer = openBuyer({ dataDir: folder, ...usual, ...settings }, { delay, ...surroundings });
  onTestFinished(() => buyer.close());
  return buyer;
}

export const httpCall = (url: string | URL): Call => ({ kind: 'http', method: 'GET', url: new URL(url), body: null });

/** An outcome in a word, with the reason of a refusal. */
export const wordOf = (outcome: Outcome): string =>
  outcome.kind === 'refused' ? `refused: ${outcome.reason}` : outcome.kind;
