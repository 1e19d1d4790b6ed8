import type { Config } from '../../../src/config.ts';
import type { Terms } from '../../../src/wiring/surfaces.ts';

/** The plain rail alone, settled by our relayer. */
export const PLAIN_RAILS: Config['rails'] = { remote: null, gateway: null, channels: null, exactFrom: 0n };

/** Terms with both ways to pay in USDC, so that a 402 has all its parts. */
export const TERMS: Terms = {
  network: 'eip155:5042',
  usdc: `0x36${'0'.repeat(38)}`,
  payTo: `0x${'5e'.repeat(20)}`,
  publicOrigin: 'https://data.percall.example',
  chain: { name: 'Arc', isPlayMoney: false },
  rails: withGateway(`0x${'77'.repeat(20)}`),
};

/** The Gateway beside it. */
export function withGateway(wallet: `0x${string}`): Config['rails'] {
  return { ...PLAIN_RAILS, gateway: { url: 'http://127.0.0.1:1', wallet, token: null, timeoutMs: 1000 } };
}
