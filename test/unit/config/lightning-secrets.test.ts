import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { lightningEnvironment } from '../../../src/config/lightning.ts';

const WALLET = 'ab'.repeat(32);
const SECRET = 'cd'.repeat(32);
const environment = z.object(lightningEnvironment);
const takes = (given: Record<string, string>) => environment.safeParse(given).success;

describe('a wallet connection', () => {
  test.each([
    `nostr+walletconnect://${WALLET}?relay=wss://relay.example&secret=${SECRET}`,
    `nostr+walletconnect://${WALLET}?relay=wss%3A%2F%2Fa.example&relay=ws://127.0.0.1:7000&secret=${SECRET}&lud16=a@b.example`,
  ])('is taken: %s', (NWC_CONNECTION) => {
    expect(takes({ NWC_CONNECTION })).toBe(true);
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
    const parsed = environment.safeParse({ NWC_CONNECTION });
    expect(parsed.success).toBe(false);
    expect(JSON.stringify(parsed.error?.issues)).not.toContain(SECRET);
  });
});

test('a rune is taken as the node printed it, and nothing that a header could not carry', () => {
  expect(takes({ CLN_RUNE: 'tU-RLjMiDpY2U0o3W1oFowar36RFGpWloPbW9-RuZdo9MyZpZD0wMjRi' })).toBe(true);
  expect(takes({ CLN_RUNE: 'two\nlines' })).toBe(false);
  expect(takes({ CLN_RUNE: '' })).toBe(false);
});
