import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import type { EmbeddedNetwork } from '../../../dev/network.ts';
import { AUTHORIZATION_USED } from '../../../src/payment/usdc/token.ts';
import { ask } from '../ledger/kill-ledger.ts';
import { type Payment, present } from '../usdc/buyer.ts';
import type { Answer, Service } from './service.ts';

const PATIENCE_MS = 120_000;

/** The process that gave an answer. A process's request ids begin with its own prefix. */
export const servedBy = ({ headers }: Answer): string => String(headers['x-request-id']).replace(/-[^-]*$/, '');

/** Whether a process exists and has not ended. */
export function isAlive(pid: number): boolean {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Polls until `isSo` is true. Throws with `what` after the time-out. */
export async function until(what: string, isSo: () => boolean | Promise<boolean>, everyMs = 25): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await delay(everyMs)) if (await isSo()) return;
  throw new Error(`not within ${PATIENCE_MS / 1000} s: ${what}`);
}

/** Polls until the service says that it is ready to sell. */
export const untilReady = (service: Pick<Service, 'get'>): Promise<void> =>
  until('it is ready', async () => (await service.get('/readyz')).status === 200);

/** Presents a payment until it is answered with 200, like a buyer that was asked to retry or whose connection broke. */
export async function presentUntilServed(origin: string, path: string, payment: Payment): Promise<Answer> {
  let last = 'nothing';
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; await delay(200)) {
    const answer = await present(origin, path, payment).catch(() => null);
    if (answer?.status === 200) return answer;
    last = answer ? `${answer.status} ${answer.body}` : 'a broken connection';
    if (answer?.status === 402) break;
  }
  throw new Error(`a payment was not served: ${last}`);
}

/** How often the chain has used this authorization. */
export async function usesOf(network: EmbeddedNetwork, { authorization }: Payment): Promise<number> {
  const word = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex').padStart(64, '0')}`;
  const topics = [AUTHORIZATION_USED, word(authorization.from), word(authorization.nonce)];
  const filter = { address: network.usdc, topics, fromBlock: '0x0', toBlock: 'latest' };
  return (await network.rpc<unknown[]>('eth_getLogs', [filter])).length;
}

/** Returns when the ledger has no open payment. */
export function untilNothingIsOpen(ledgerFile: string): Promise<void> {
  const open = "SELECT count(*) FROM usdc_payments WHERE state NOT IN ('settled', 'failed')";
  return until('nothing is open', () => ask<number>(ledgerFile, open) === 0);
}
