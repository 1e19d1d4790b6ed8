import { createHash } from 'node:crypto';
import { bytesToHex } from '../../../../src/lib/hex.ts';
import type { Intent } from '../../../../src/payment/settler.ts';
import { between, type Dice, pick } from './dice.ts';

/**
 * How a payer's settlement behaves. A `griefer` uses up all the gas of its transaction. A `grower` is plain until `fromMs` and then behaves like a
 * griefer.
 */
const KINDS = ['plain', 'poor', 'wallet', 'dear', 'grower', 'griefer', 'refuser'] as const;
export interface Payer {
  readonly kind: (typeof KINDS)[number];
  /** When it becomes poor, or gets code, in milliseconds since the start. */
  readonly fromMs: number;
}

/** What a third party does with an authorization. `hidden`: it is used, but the logs do not show that for a while. */
const DEEDS = ['paid', 'cancelled', 'hidden'] as const;
export interface Deed {
  readonly kind: (typeof DEEDS)[number];
  readonly atMs: number;
  readonly intent: Intent;
}

const FAULTS = [
  'down',
  'slow',
  'refuses',
  'busy',
  'hangs',
  'nonsense',
  'keeps',
  'lags',
  'disk',
  'closed',
  'token',
  'dear',
  'congested',
] as const;
export interface Fault {
  readonly kind: (typeof FAULTS)[number];
  readonly fromMs: number;
  readonly toMs: number;
  /** The share of the requests that it hits. */
  readonly share: number;
}

/** Everything that happens to the relayer from outside, in milliseconds since the start. */
export interface Scenario {
  readonly bursts: readonly { readonly atMs: number; readonly intents: readonly Intent[] }[];
  readonly payers: ReadonlyMap<string, Payer>;
  readonly deeds: readonly Deed[];
  readonly faults: readonly Fault[];
  /** When another transaction uses the relayer's next nonce. */
  readonly foreignMs: readonly number[];
  readonly stopMs: number;
  readonly hasHeads: boolean;
  readonly gatherMs: number;
  readonly carefulFromMs: number;
}

/** The start of every world, in Unix milliseconds. */
export const START_MS = 1_800_000_000_000;
/** In milliseconds. Faults and new payments end by then. Open payments have the rest of the time to end. */
const TROUBLE_MS = 15_000;
const CALM_MS = 25_000;

const bytes = (seed: string, name: string, length: number): Buffer =>
  Buffer.concat([0, 1, 2].map((part) => createHash('sha256').update(`${seed}/${name}/${part}`).digest())).subarray(
    0,
    length,
  );

/** Draws the scenario of a seed. */
export function drawScenario(seed: string, dice: Dice): Scenario {
  const payers = new Map<string, Payer>();
  const addresses = Array.from({ length: between(dice('payers'), 1, 14) }, (_, at) => bytes(seed, `payer ${at}`, 20));
  const odd = dice('odd payers') * 0.5;
  for (const [at, address] of addresses.entries()) {
    const kind = dice('is odd', at) < odd ? pick(dice('kind', at), KINDS) : 'plain';
    payers.set(bytesToHex(address), { kind, fromMs: dice('from', at) * TROUBLE_MS });
  }
  const bursts = Array.from({ length: between(dice('bursts'), 1, 10) }, (_, burst) => {
    const atMs = dice('burst', burst) * TROUBLE_MS;
    const intents = Array.from({ length: between(dice('size', burst) ** 3, 1, 24) }, (_, at): Intent => {
      const name = `${burst}/${at}`;
      const from = pick(dice('payer', name), addresses);
      const hasCode = ['wallet', 'griefer', 'refuser'].includes(payers.get(bytesToHex(from))?.kind ?? '');
      const lasts = dice('lasts', name) < 0.1 ? dice('seconds', name) * 12 : 1e6;
      const validBefore = BigInt(Math.floor((START_MS + atMs) / 1000 + lasts));
      const terms = { value: 1000n, validAfter: 0n, validBefore, signature: bytes(seed, `signature ${name}`, 65) };
      const authorization = { ...terms, from, to: Buffer.alloc(20, 7), nonce: bytes(seed, `nonce ${name}`, 32) };
      return { id: name, authorization, call: null, fromBlock: 1, broadcast: dice('broadcast', name) < 0.07, hasCode };
    });
    return { atMs, intents };
  });
  const all = bursts.flatMap(({ atMs, intents }) => intents.map((intent) => ({ atMs, intent })));
  const deeds = all
    .filter((_, at) => dice('deed', at) < dice('deeds') * 0.2)
    .map(
      ({ atMs, intent }, at): Deed => ({
        intent,
        kind: pick(dice('what', at), DEEDS),
        atMs: atMs + dice('deed at', at) * 3000 - 500,
      }),
    );
  const faults = Array.from({ length: between(dice('faults'), 0, 10) }, (_, at): Fault => {
    const fromMs = dice('fault from', at) * TROUBLE_MS;
    const toMs = fromMs + 300 + dice('fault to', at) ** 2 * 9000;
    return { kind: pick(dice('fault', at), FAULTS), fromMs, toMs, share: pick(dice('share', at), [0.15, 0.5, 1]) };
  });
  return {
    bursts,
    payers,
    deeds,
    faults,
    foreignMs: Array.from({ length: between(dice('foreign') ** 3, 0, 4) }, (_, at) => dice('foreign', at) * TROUBLE_MS),
    stopMs: dice('stops early') < 0.15 ? dice('stop') * TROUBLE_MS : TROUBLE_MS + CALM_MS,
    hasHeads: dice('heads') < 0.7,
    gatherMs: pick(dice('gather'), [0, 100, 200]),
    carefulFromMs: dice('careful') < 0.3 ? dice('careful from') * TROUBLE_MS : Number.POSITIVE_INFINITY,
  };
}
