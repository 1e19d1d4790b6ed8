import { describe, expect, test } from 'vitest';
import { ENV } from '../../http/harness.ts';
import { configProblems } from '../../support/service/config-problems.ts';

const WALLET = 'ab'.repeat(32);
const SECRET = 'cd'.repeat(32);
const problemsOf = (given: Record<string, string>) => configProblems({ ...ENV, ...given });

describe('a wallet connection', () => {
  test.each([
    `nostr+walletconnect://${WALLET}?relay=wss://relay.example&secret=${SECRET}`,
    `nostr+walletconnect://${WALLET}?relay=wss%3A%2F%2Fa.example&relay=ws://127.0.0.1:7000&secret=${SECRET}&lud16=a@b.example`,
  ])('is taken: %s', (NWC_CONNECTION) => {
    expect(problemsOf({ NWC_CONNECTION })).toEqual([]);
  });

  test.each([
    ['another scheme', `https://${WALLET}?relay=wss://relay.example&secret=${SECRET}`],
    ['no wallet', `nostr+walletconnect://?relay=wss://relay.example&secret=${SECRET}`],
    ['no secret', `nostr+walletconnect://${WALLET}?relay=wss://relay.example`],
    ['a short secret', `nostr+walletconnect://${WALLET}?relay=wss://relay.example&secret=cd`],
    ['no relay', `nostr+walletconnect://${WALLET}?secret=${SECRET}`],
    ['a relay that is none', `nostr+walletconnect://${WALLET}?relay=https://relay.example&secret=${SECRET}`],
    ['nonsense', 'nostr+walletconnect://['],
  ])('with %s stops the start, and its secret is not repeated', (_what, NWC_CONNECTION) => {
    const problems = problemsOf({ NWC_CONNECTION });
    expect(problems).toEqual([expect.stringMatching(/^NWC_CONNECTION: a nostr\+walletconnect:/)]);
    expect(problems.join()).not.toContain(SECRET);
  });
});

test('a rune is taken as the node printed it, and nothing that a header could not carry', () => {
  expect(problemsOf({ CLN_RUNE: 'tU-RLjMiDpY2U0o3W1oFowar36RFGpWloPbW9-RuZdo9MyZpZD0wMjRi' })).toEqual([]);
  expect(problemsOf({ CLN_RUNE: 'two\nlines' })).toEqual(['CLN_RUNE: the rune as the node printed it']);
  const sold = { LIGHTNING_RECEIVER: 'cln', LIGHTNING_NODE_URL: 'http://127.0.0.1:3010' };
  expect(problemsOf({ ...sold, CLN_RUNE: '' })).toEqual(['CLN_RUNE is missing (LIGHTNING_RECEIVER=cln needs it)']);
});
