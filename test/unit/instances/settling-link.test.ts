import { expect, test } from 'vitest';
import { createSettlingLink, refusalsText } from '../../../src/instances/settling-link.ts';
import type { Refusals } from '../../../src/payment/settling-local.ts';
import type { Words } from '../../../src/store/ports/instances.ts';

const [PAYER, OTHER] = [Buffer.alloc(20, 7), Buffer.alloc(20, 8)];
const WORDS: Words = { ask() {}, tell() {}, onAsked() {}, onTold() {}, close: async () => {} };

/** A link whose leader says what the test says last. */
function newLink() {
  const leader: { said: string | null } = { said: null };
  const link = createSettlingLink({ said: () => leader.said }, WORDS);
  const say = (change: Partial<Refusals>) => {
    const nothing = { unavailable: null, codeRefused: null, payers: [], gatewayUnavailable: null, rails: {} };
    leader.said = refusalsText({ ...nothing, ...change });
  };
  return { leader, link, say };
}

test('nothing is sold while nobody leads, or what the leader says cannot be read', () => {
  const { leader, link, say } = newLink();
  for (const said of [null, '', '{}', 'null', '{"unavailable":null}']) {
    leader.said = said;
    expect([link.unavailable(), link.gatewayUnavailable()], String(said)).toEqual([
      expect.stringContaining('no instance settles'),
      expect.stringContaining('no instance settles'),
    ]);
    expect([link.rails(), link.refuses(PAYER)], String(said)).toEqual([{}, null]);
  }
  say({});
  expect([link.unavailable(), link.gatewayUnavailable()]).toEqual([null, null]);
});

test('what the leader cannot settle is not sold, in its own words, until it says otherwise', () => {
  const { link, say } = newLink();
  say({ unavailable: 'short of gas', rails: { gateway: { ok: false, detail: 'away' } } });
  expect([link.unavailable(), link.gatewayUnavailable()]).toEqual(['short of gas', null]);
  expect(link.rails()).toEqual({ gateway: { ok: false, detail: 'away' } });
  say({ gatewayUnavailable: 'a payment waits' });
  expect([link.unavailable(), link.gatewayUnavailable(), link.rails()]).toEqual([null, 'a payment waits', {}]);
});

test('a payer is refused whom the leader refuses, and nobody else', () => {
  const { link, say } = newLink();
  say({ payers: [[`0x${PAYER.toString('hex')}`, 'its payments burn gas']] });
  expect([link.refuses(PAYER), link.refuses(OTHER)]).toEqual(['its payments burn gas', null]);
  say({});
  expect(link.refuses(PAYER)).toBeNull();
});

test('accounts with code are refused while the leader refuses them; one of the version before refuses none', () => {
  const { leader, link, say } = newLink();
  say({ codeRefused: 'the budget is used up' });
  expect([link.refusesCode(), link.unavailable()]).toEqual(['the budget is used up', null]);
  say({});
  expect(link.refusesCode()).toBeNull();
  leader.said = '{"unavailable":null,"payers":[],"gatewayUnavailable":null,"rails":{}}';
  expect([link.refusesCode(), link.unavailable()]).toEqual([null, null]);
});

test('who sends a facilitator’s settlements is passed on with its probe', () => {
  const { link, say } = newLink();
  const rails = { facilitator: { ok: true, sender: `0x${'77'.repeat(20)}` as const } };
  say({ rails });
  expect(link.rails()).toEqual(rails);
});
