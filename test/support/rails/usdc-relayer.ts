import type { RailFixture } from './rail-fixture.ts';
import { openExact } from './usdc-exact.ts';
import { usdcUnits } from './usdc-payment.ts';

/** `usdc-exact`, settled by our own relayer. */
export const usdcRelayer: RailFixture = {
  name: 'usdc-exact over the relayer',
  kind: 'signed-first',
  surface: 'paid',
  program: 'service-shop.ts',
  cannot: {},
  unitsOf: usdcUnits,
  open: async (network) => ({
    ...openExact(network),
    env: { LIGHTNING_RECEIVER: 'none' },
    secrets: [network.relayer.privateKey.slice(2)],
    close: async () => {},
  }),
};
