import { editDistance } from '../lib/edit-distance.ts';

/** A key of the environment that looks like one of ours, and the real key that is nearest to it. Never its value. */
export interface UnreadKey {
  readonly key: string;
  readonly nearest: string;
}

/**
 * The first words of our keys that mean nothing to other programs. Words such as HOST, LOG, NODE, PUBLIC or WEB are
 * left out, because ordinary environments have keys that begin with them.
 */
export const OWN_WORDS = [
  'RELAYER',
  'SETTLER',
  'SELLER',
  'CHANNELS',
  'GATEWAY',
  'FACILITATOR',
  'LIGHTNING',
  'LEDGER',
  'COLLECTOR',
  'SELFTEST',
  'PAYER',
  'REDELIVERY',
  'RPC',
  'USDC',
  'USYC',
  'MPP',
  'LND',
  'CLN',
  'NWC',
  'PHOENIXD',
  'UPSTREAM',
];

/** Keys that begin like ours and are read by our commands: the buyer's (docs/paying.md). */
const READ_BY_COMMANDS = [
  'RPC_URL',
  'PAYER_URL',
  'NWC_PAYER',
  'LND_PAYER_URL',
  'LND_PAYER_TLS_CERT',
  'LND_PAYER_MACAROON',
];

/** What a cluster sets in each container for a service named like one of our words: `LEDGER_PORT_5432_TCP`. */
const OF_A_CLUSTER = /_(SERVICE_(HOST|PORT)(_.*)?|PORT(_\d+_(TCP|UDP)(_\w+)?)?)$/;
/** Shorter words and keys are near to too many others. */
const LEAST_WORD = 6;
const LEAST_KEY = 8;
/** Letters that a mistyped key may differ in from a real one whose first word is no word of ours. */
const MISTYPED = 2;

/**
 * Returns the keys with a value that begin like ours, or are mistyped by up to two letters, and that are no key of
 * `known`. A setting that nobody reads would go unnoticed: the service runs on without it. No value is shown,
 * because it may be a private key.
 */
export function unreadKeys(
  env: Readonly<Record<string, string | undefined>>,
  known: readonly string[],
): readonly UnreadKey[] {
  const read = new Set([...known, ...READ_BY_COMMANDS]);
  return Object.entries(env).flatMap(([key, value]) => {
    if (!value || read.has(key) || !/^[A-Z][A-Z0-9_]*$/.test(key) || OF_A_CLUSTER.test(key)) return [];
    const { name, distance } = nearestOf(key, known);
    if (key.includes('_') && key.length >= LEAST_KEY && distance <= MISTYPED) return [{ key, nearest: name }];
    const own = ownWordOf(key);
    const alike = known.filter((one) => firstWord(one) === own);
    return own === undefined ? [] : [{ key, nearest: nearestOf(key, alike).name }];
  });
}

const firstWord = (key: string): string => key.split('_', 1)[0] ?? '';

/** Our word that a key begins with, also with one letter mistyped; undefined without one. */
function ownWordOf(key: string): string | undefined {
  const word = firstWord(key);
  return (
    OWN_WORDS.find((own) => own === word) ??
    OWN_WORDS.find((own) => own.length >= LEAST_WORD && editDistance(word, own, 1) <= 1)
  );
}

function nearestOf(key: string, known: readonly string[]): { name: string; distance: number } {
  let nearest = { name: '', distance: Number.POSITIVE_INFINITY };
  for (const name of known) {
    const most = Math.min(nearest.distance - 1, key.length + name.length);
    const distance = editDistance(key, name, most);
    if (distance <= most) nearest = { name, distance };
  }
  return nearest;
}
