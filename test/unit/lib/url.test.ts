import { describe, expect, test } from 'vitest';
import { packagesVulns } from '../../../src/endpoints/packages/vulns.ts';
import { withoutCredentials } from '../../../src/lib/url.ts';

describe('credentials of a configured URL', () => {
  test.each([
    ['https://user:secret@mirror.example/osv', 'https://mirror.example/osv'],
    ['http://token@mirror.example:8080/a?b=c@d', 'http://mirror.example:8080/a?b=c@d'],
    ['https://user:p@ss@mirror.example/', 'https://mirror.example/'],
    ['https://api.osv.dev/v1/query', 'https://api.osv.dev/v1/query'],
    ['https://mirror.example/@scope/name', 'https://mirror.example/@scope/name'],
  ])('are not shown: %s', (url, shown) => {
    expect(withoutCredentials(url)).toBe(shown);
  });

  test('do not reach the buyer of packages/vulns', async () => {
    const packages = {
      findListing: async () => ({ state: 'unregistered' }),
      osv: {
        advisories: async () => ({
          advisories: [],
          isNamed: true,
          url: 'https://user:secret@mirror.example/v1/query',
          retrievedAtMs: 1000,
        }),
      },
    } as unknown as Parameters<typeof packagesVulns.run>[1]['packages'];
    const asked = { name: 'golang.org/x/net', ecosystem: 'go' } as Parameters<typeof packagesVulns.run>[0];
    const answer = await packagesVulns.run(asked, { packages }, AbortSignal.timeout(10_000));
    expect(answer).toMatchObject({ source: { url: 'https://mirror.example/v1/query' } });
  });
});
