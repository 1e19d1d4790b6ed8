import { vi } from 'vitest';
import type { StoppedService } from '../../../scripts/lib/ledger/stopped-service.ts';

/** Where no block is mined: the work ends without its result, however long it waits. */
const STILL_MS = 500;
/** More than a busy machine needs until its chain has answered. */
const PATIENCE_MS = 60_000;

/**
 * Does the work of `npm run ledger -- reconcile` or `claim` in this process: a program of its own would load half of the service for each. Resolves with
 * what it prints, and rejects where the program fails. The programs themselves run in test/conformance/tools.
 */
export async function inPlaceOfService(
  work: (service: StoppedService) => Promise<boolean>,
  { env, location }: Pick<StoppedService, 'env' | 'location'>,
  { isChainStill = false } = {},
): Promise<{ done: boolean; printed: string; said: string }> {
  const [printed, said]: [string[], string[]] = [[], []];
  const timeoutMs = isChainStill ? STILL_MS : PATIENCE_MS;
  const print = (line: string) => void printed.push(`${line}\n`);
  // The service's log goes there too, and would stand in the tests' report.
  const stderr = vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  try {
    const done = await work({ env, location, timeoutMs, print, say: (line) => void said.push(`${line}\n`) });
    return { done, printed: printed.join(''), said: said.join('') };
  } finally {
    stderr.mockRestore();
  }
}
