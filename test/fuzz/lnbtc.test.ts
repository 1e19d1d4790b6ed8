import { isDeepStrictEqual } from 'node:util';
import { describe, expect, test } from 'vitest';
import { checkProof, LNBTC_REASONS } from '../../src/payment/lightning/proof.ts';
import { seed, seededRandom } from '../support/random.ts';
import { randomJson } from '../support/random-json.ts';
import {
  INVOICE,
  NOW,
  type Presentation,
  presentation,
  vectorPresentation,
} from '../unit/payment/lnbtc/proof-cases.ts';

/** The share of the cases that is drawn in the quick lane. */
const SHARE = process.env.SLOW ? 1 : 1 / 4;
const [PAIRS, MUTATIONS, BOTH, EDITS] = [5000 * SHARE, 20_000 * SHARE, 10_000 * SHARE, 3000 * SHARE];

type Json = Record<string, unknown>;
type Both = Pick<Presentation, 'payment' | 'requirement'>;

function outcomeOf({ payment, requirement }: { payment: unknown; requirement: unknown }): string {
  const verdict = checkProof(payment, requirement, { now: NOW });
  return verdict.ok ? 'ok' : verdict.reason;
}

const isListed = (outcome: string) => outcome === 'ok' || (LNBTC_REASONS as readonly string[]).includes(outcome);
const isObject = (value: unknown): value is Json => typeof value === 'object' && value !== null;
const member = (value: unknown, name: string) =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;

/** Every object and array in a value, itself included. */
function containers(value: unknown): object[] {
  return isObject(value) ? [value, ...Object.values(value).flatMap(containers)] : [];
}

function assign(owner: object, key: string, value: unknown): void {
  Object.defineProperty(owner, key, { value, enumerable: true, writable: true, configurable: true });
}

/** Deletes, replaces, adds or copies one member anywhere in the value, within what JSON can express. */
function mutate(root: object, random: () => number): void {
  const pick = <T>(list: readonly T[]): T => list[Math.floor(random() * list.length)] as T;
  const places = containers(root);
  const owner = pick(places);
  const keys = Object.keys(owner);
  // The two roots stay, so that something is left to check.
  const key = owner === root || keys.length === 0 ? undefined : pick(keys);
  const kind = Math.floor(random() * 4);
  if (Array.isArray(owner)) {
    if (kind === 0) owner.pop();
    else owner.push(randomJson(random));
  } else if (owner === root || key === undefined || kind === 3) {
    if (owner !== root)
      assign(owner, pick(['more', 'constructor', '__proto__', 'toJSON', 'payer']), randomJson(random));
  } else if (kind === 0) Reflect.deleteProperty(owner, key);
  else if (kind === 1) assign(owner, key, randomJson(random));
  else
    assign(owner, key, structuredClone(pick(places.flatMap((place) => (place === root ? [] : Object.values(place))))));
}

const TERMS = ['scheme', 'network', 'amount', 'asset', 'payTo', 'maxTimeoutSeconds'];
const BOUND = ['paymentFlow', 'requestHash', 'requestBindingProfile'];

/** The members that the scheme checks, listed independently of the code. Two presentations that agree in them have the same outcome. */
function checkedMembers({ payment, requirement }: Both) {
  const accepted = member(payment, 'accepted');
  const [theirs, ours] = [member(accepted, 'extra'), member(requirement, 'extra')];
  const method = (extra: unknown) =>
    member(extra, 'assetTransferMethod') ??
    (isObject(extra) && Object.hasOwn(extra, 'assetTransferMethod') ? null : 'bolt11');
  const apart = new Set([...BOUND, 'requestBindingParams', 'assetTransferMethod', 'invoice']);
  const declared = isObject(ours) ? Object.keys(ours).filter((key) => !apart.has(key)) : [];
  return {
    terms: [accepted, requirement].map((side) => TERMS.map((name) => member(side, name))),
    bound: [theirs, ours].map((side) => BOUND.map((name) => member(side, name))),
    params: [theirs, ours].map((side) => member(side, 'requestBindingParams')),
    methods: [theirs, ours].map(method),
    declared: declared.every((key) => isDeepStrictEqual(member(ours, key), member(theirs, key))),
    invoice: member(theirs, 'invoice'),
    isInvoiceRequired: ![undefined, null, ''].includes(member(ours, 'invoice') as undefined),
    preimage: member(member(payment, 'payload'), 'preimage'),
  };
}

const GOOD = checkedMembers(presentation());

/** True when the outcome is right. Accepted: no checked member changed, except names to bind that both sides changed alike. Refused: one did. */
function isRight(outcome: string, both: Both): boolean {
  const found = checkedMembers(both);
  if (outcome !== 'ok') return isListed(outcome) && !isDeepStrictEqual(found, GOOD);
  const [theirs, ours] = found.params;
  return isDeepStrictEqual(theirs, ours) && isDeepStrictEqual({ ...found, params: null }, { ...GOOD, params: null });
}

describe('checkProof', () => {
  test(`never throws and knows only listed reasons for any JSON at all (${PAIRS} pairs, seed ${seed})`, () => {
    const random = seededRandom('lnbtc-json');
    const wrong: string[] = [];
    for (let n = 0; n < PAIRS; n++) {
      const outcome = outcomeOf({ payment: randomJson(random), requirement: randomJson(random) });
      if (outcome === 'ok' || !isListed(outcome)) wrong.push(outcome);
    }
    expect(wrong).toEqual([]);
  });

  test(`accepts a mutated proof exactly when no checked member has changed (${MUTATIONS} mutations, seed ${seed})`, () => {
    const random = seededRandom('lnbtc-mutations');
    const wrong: string[] = [];
    const reached = new Map<string, number>();
    for (let n = 0; n < MUTATIONS; n++) {
      const { payment, requirement } = presentation();
      const both = { payment, requirement };
      for (let left = 1 + Math.floor(random() * 3); left > 0; left--) mutate(both, random);
      const outcome = outcomeOf(both);
      reached.set(outcome, (reached.get(outcome) ?? 0) + 1);
      if (!isRight(outcome, both)) wrong.push(`${outcome}: ${JSON.stringify(both)}`);
    }
    expect(wrong).toEqual([]);
    // The mutations reached more than one check.
    expect(reached.get('ok')).toBeGreaterThan(200);
    expect(reached.size).toBeGreaterThan(12);
  });

  test(`the same change on both sides is checked by itself (${BOTH} mutations, seed ${seed})`, () => {
    const random = seededRandom('lnbtc-both');
    const wrong: string[] = [];
    const reached = new Set<string>();
    for (let n = 0; n < BOTH; n++) {
      const { payment, requirement } = presentation();
      mutate({ requirement }, random);
      const both = { payment: { ...payment, accepted: structuredClone(requirement) }, requirement };
      const outcome = outcomeOf(both);
      reached.add(outcome);
      if (!isRight(outcome, both)) wrong.push(`${outcome}: ${JSON.stringify(both)}`);
    }
    expect(wrong).toEqual([]);
    expect(reached.size).toBeGreaterThan(8);
  });

  test(`no edit of the invoice's text is accepted (${EDITS} edits, seed ${seed})`, () => {
    const random = seededRandom('lnbtc-text');
    const alphabet = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l1bioLQ ';
    for (let n = 0; n < EDITS; n++) {
      let text = INVOICE;
      for (let left = 1 + Math.floor(random() * 3); left > 0; left--) {
        const at = Math.floor(random() * text.length);
        const letter = alphabet[Math.floor(random() * alphabet.length)] ?? '';
        const kind = Math.floor(random() * 3);
        text = text.slice(0, at) + (kind === 0 ? '' : letter) + text.slice(at + (kind === 1 ? 0 : 1));
      }
      if (text === INVOICE) continue;
      const built = vectorPresentation();
      ((built.payment.accepted as Json).extra as Json).invoice = text;
      expect(outcomeOf(built), text).toMatch(/^invalid_exact_lnbtc_invoice_/);
    }
  });
});
