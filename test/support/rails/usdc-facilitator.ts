import { randomBytes } from 'node:crypto';
import { startLocalFacilitator } from '../usdc/local-facilitator.ts';
import { signedRail } from './signed-rail.ts';
import { openExact } from './usdc-exact.ts';

/** `usdc-exact`, settled by the SDK's own facilitator. */
export const usdcFacilitator = signedRail('usdc-exact over a facilitator', async (network) => {
  const token = randomBytes(16).toString('hex');
  const facilitator = await startLocalFacilitator(network, token);
  return {
    ...openExact(network),
    env: {
      RELAYER_PRIVATE_KEY: '',
      SETTLER: 'facilitator',
      REMOTE_FACILITATOR_URL: facilitator.url,
      REMOTE_FACILITATOR_TOKEN: token,
      REMOTE_FACILITATOR_TIMEOUT_MS: '60000',
    },
    secrets: [token],
    close: facilitator.stop,
  };
});
