import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { buyOnce } from '../../support/usdc/buyer.ts';

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  service = await startService(network);
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
});

const RIGHT = '0x50A2b0B577eC24d7ce1aeD372A8a6fd14CE1bE57';

test.each([
  [RIGHT, 200],
  [RIGHT.toLowerCase(), 200],
  [`0x${RIGHT.slice(2).toUpperCase()}`, 200],
  // The last digit is mistyped.
  [`${RIGHT.slice(0, -1)}8`, 400],
  // The case of the first letter is wrong.
  [RIGHT.replace('A', 'a'), 400],
])('a buyer who asks about %s gets %i, and pays only for an answer', async (address, status) => {
  const { answer, body, paid } = await buyOnce(network, service.origin, `/v1/paid/chain/wallet?address=${address}`);
  expect([answer.status, paid]).toEqual([status, status === 200 ? priceOf('/chain/wallet').units : 0n]);
  if (status === 400) {
    expect(body).toMatchObject({
      code: 'bad_parameter',
      charged: false,
      errors: [{ path: 'address', message: expect.stringContaining('EIP-55 checksum is wrong') }],
    });
  } else expect(body).toMatchObject({ address: RIGHT.toLowerCase() });
});
