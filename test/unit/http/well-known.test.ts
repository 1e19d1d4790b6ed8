import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { describeParams } from '../../../src/catalogue/params.ts';
import { entriesOn, pathOn } from '../../../src/catalogue/paths.ts';
import { describeWellKnown } from '../../../src/discovery/description.ts';
import { createWellKnown } from '../../../src/http/documents.ts';
import { plainText } from '../../../src/lib/untrusted.ts';
import { createOffer, type Terms } from '../../../src/wiring/surfaces.ts';
import { challengeOf } from '../../support/service/challenge-of.ts';
import { withGateway } from '../../support/service/terms.ts';

const publicOrigin = 'https://here.example';
const TERMS: Terms = {
  network: 'eip155:5042',
  usdc: `0x36${'0'.repeat(38)}`,
  payTo: `0x${'5e'.repeat(20)}`,
  publicOrigin,
  chain: { name: 'Arc', isPlayMoney: false },
  rails: withGateway(`0x${'77'.repeat(20)}`),
};
const acceptsOf = (endpoint: (typeof catalogue)[number]) => createOffer(endpoint, TERMS).accepts;
const document = createWellKnown({ catalogue, acceptsOf, publicOrigin });
/** The longest description that the market takes from a third party, in characters. */
const MARKET_KEEPS = 200;
const paid = entriesOn(catalogue, 'paid');

describe('/.well-known/x402', () => {
  test('contains every USDC route, and a list of their addresses', () => {
    const addresses = paid.map((endpoint) => publicOrigin + pathOn(endpoint, 'paid'));
    expect(addresses).toContain(`${publicOrigin}/v1/paid/chain/wallet`);
    expect(document.items.map(({ resource }) => resource)).toEqual(addresses);
    expect(document.resources).toEqual(addresses);
  });

  test.each(paid.map((endpoint) => [pathOn(endpoint, 'paid'), endpoint] as const))(
    'offers %s as its 402 does, and describes it as our own market reads such documents',
    (path, endpoint) => {
      const item = document.items.find(({ resource }) => resource === publicOrigin + path);
      const challenge = challengeOf(createOffer(endpoint, TERMS));
      expect(item?.accepts).toEqual(JSON.parse(Buffer.from(challenge(path), 'base64').toString('utf8')).accepts);
      expect(item?.accepts).toHaveLength(2);
      const read = describeWellKnown(JSON.parse(JSON.stringify(document)), new URL(publicOrigin + path), 'GET');
      expect(read).toMatchObject({
        name: endpoint.label,
        label: 'percall',
        description: endpoint.summary,
        method: 'GET',
      });
      expect(read.params.map(({ name, required, description }) => ({ name, required, description }))).toEqual(
        describeParams(endpoint).map(({ name, required, description }) => ({
          name,
          required,
          description: plainText(description, MARKET_KEEPS),
        })),
      );
    },
  );

  test('names no route that is not sold for USDC', () => {
    expect(JSON.stringify(document.items)).not.toMatch(/\/v1\/(lightning|fees)/);
  });
});
