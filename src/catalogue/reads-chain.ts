import type { Endpoint } from './endpoint.ts';

/** The first path segments of entries whose answers are of the configured chain. */
const CHAIN_TOPICS: ReadonlySet<string> = new Set([
  'activity',
  'chain',
  'deploys',
  'fees',
  'fx',
  'health',
  'market',
  'network',
  'rpc',
  'token',
]);

/** Whether an entry's answer is of the configured chain, and of no other. Its texts name that chain. */
export function readsChain({ path }: Pick<Endpoint<never>, 'path'>): boolean {
  return CHAIN_TOPICS.has(path.split('/')[1] ?? '');
}
