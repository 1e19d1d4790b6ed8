import type { Terms } from '../../../src/payment/open-offers.ts';

/** Terms with both ways to pay in USDC, so that a 402 has all its parts. */
export const TERMS: Terms = {
  network: 'eip155:5042',
  usdc: `0x36${'0'.repeat(38)}`,
  payTo: `0x${'5e'.repeat(20)}`,
  publicOrigin: 'https://data.percall.example',
  gatewayWallet: `0x${'77'.repeat(20)}`,
};
