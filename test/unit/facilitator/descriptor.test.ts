import { expect, it } from 'vitest';
import { describeFacilitator } from '../../../src/facilitator/facilitator.ts';
import { LIMITS } from '../../support/lightning/facilitator.ts';

it('the descriptor has the promised members, each with its configured figure', () => {
  const counts = { total: 40, today: 3, nodes: 2, own: 1 };
  const described = describeFacilitator('https://api.example', LIMITS, counts);
  expect(described).toEqual({
    url: 'https://api.example/facilitator',
    scheme: 'exact',
    networks: ['lnbtc:000000000019d6689c085ae165831e93', 'lnbtc:000000000933ea01ad0ee984209779ba'],
    spec: expect.stringMatching(/^https:\/\/.+\/specs\/schemes\/exact\/scheme_exact_lnbtc\.md$/),
    registration: 'none',
    routes: { supported: 'GET /facilitator/supported', settle: 'POST /facilitator/settle' },
    limits: { maxTimeoutSeconds: 3600, perMinute: 60, dailyCap: 20_000, settledToday: 3 },
    settled: { total: 40, today: 3, nodes: 2, forOurOwnNode: 1 },
    note: expect.stringContaining('Nothing moves at settlement'),
  });
  // The limit of a client is stated in words, because callers of an IPv6 network could not know it otherwise.
  expect(described.note).toMatch(
    /an IPv6 \/48, may claim a tenth of a UTC day; one payee may have a twentieth\. Half of the day is open to every payee\. The other half is for known/,
  );
});
