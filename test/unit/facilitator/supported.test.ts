import { expect, it } from 'vitest';
import { SUPPORTED } from '../../../src/facilitator/facilitator.ts';

it('supports the scheme on both networks, paid by BOLT11 and up front', () => {
  const kind = { x402Version: 2, scheme: 'exact', extra: { assetTransferMethod: 'bolt11', paymentFlow: 'upfront' } };
  expect(SUPPORTED).toEqual({
    kinds: [
      { ...kind, network: 'lnbtc:000000000019d6689c085ae165831e93' },
      { ...kind, network: 'lnbtc:000000000933ea01ad0ee984209779ba' },
    ],
    extensions: [],
    signers: {},
  });
});
