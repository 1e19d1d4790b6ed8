import { expect, test } from 'vitest';
import { gatewayRequirement, isGatewayAccepted } from '../../../../../src/payment/usdc/gateway.ts';
import { newKey, plainRequirement } from '../../../../support/usdc/payments.ts';

const WALLET = `0x${'77'.repeat(20)}` as const;
const plain = plainRequirement(newKey().address);
const requirement = gatewayRequirement(plain, WALLET);

test('the Gateway’s entry of a challenge differs from the plain entry in `extra` alone', () => {
  expect(requirement).toEqual({
    ...plain,
    extra: { name: 'GatewayWalletBatched', version: '1', verifyingContract: WALLET },
  });
});

test('only a payment whose `extra` has the Gateway’s name is a payment of the Gateway’s rail', () => {
  expect([isGatewayAccepted({ ...requirement }), isGatewayAccepted({ ...plain })]).toEqual([true, false]);
  for (const extra of [null, undefined, 'GatewayWalletBatched', 7]) expect(isGatewayAccepted({ extra })).toBe(false);
});
