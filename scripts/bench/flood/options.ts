import { resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Refusal } from './providers.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';

/** The options of `npm run bench -- flood`. */
export interface FloodOptions {
  /** The checkout that is measured. */
  readonly checkout: string;
  readonly scenarios: readonly Scenario[];
  /** Of the honest buyer, for each line. */
  readonly calls: number;
  readonly variant: Refusal;
  readonly json: boolean;
  /** Where logs, metrics and every try are kept; null keeps nothing. */
  readonly keepIn: string | null;
}

const OWN_CHECKOUT = resolve(import.meta.dirname, '../../..');
const CALLS = 20;

export const USAGE = `npm run bench -- flood [options]
  --service DIR   the checkout whose src/server.ts is measured (this one)
  --only NAME     one flood, several with commas: ${SCENARIOS.map(({ name }) => name).join(', ')}
  --calls N       of the honest buyer for each line (${CALLS})
  --variant V     how providers refuse: 429 (HTTP) or rpc (error -32011); 429 by default
  --json          print JSON in place of the table
  --keep DIR      keep the service's logs and metrics, and every try, below this folder
  --help          print this`;

const TEXT = { type: 'string' } as const;
const SWITCH = { type: 'boolean' } as const;
const KNOWN = {
  service: TEXT,
  only: TEXT,
  calls: TEXT,
  variant: TEXT,
  keep: TEXT,
  json: SWITCH,
  help: SWITCH,
} as const;

/** Reads the words after `flood`; null where only help is asked for. Throws in words when they are not understood. */
export function readOptions(words: readonly string[]): FloodOptions | null {
  const { values } = parseArgs({ args: [...words], options: KNOWN, strict: true });
  if (values.help) return null;
  const { variant = '429', calls = String(CALLS) } = values;
  if (variant !== '429' && variant !== 'rpc') throw new Error('--variant is 429 or rpc');
  if (!/^[1-9]\d{0,3}$/.test(calls)) throw new Error('--calls is a number from 1 to 9999');
  return {
    checkout: values.service === undefined ? OWN_CHECKOUT : resolve(values.service),
    scenarios: values.only === undefined ? SCENARIOS : values.only.split(',').map(scenarioOf),
    calls: Number(calls),
    variant,
    json: values.json ?? false,
    keepIn: values.keep === undefined ? null : resolve(values.keep),
  };
}

function scenarioOf(wanted: string): Scenario {
  const found = SCENARIOS.find(({ name }) => name === wanted);
  if (!found) throw new Error(`no such flood: ${wanted}`);
  return found;
}
