import { signedRail } from './signed-rail.ts';
import { openExact } from './usdc-exact.ts';

/** `usdc-exact`, settled by our own relayer. */
export const usdcRelayer = signedRail('usdc-exact over the relayer', async (network) => ({
  ...openExact(network),
  env: {},
  secrets: [network.relayer.privateKey.slice(2)],
  close: async () => {},
}));
