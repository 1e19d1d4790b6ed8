import { hexToBytes } from '../../lib/hex.ts';
import { PaymentRefused } from '../refusal.ts';
import { checkGatewayAuthorization, gatewayRequirement } from './gateway.ts';
import type { OpenGateway } from './open-gateway.ts';
import type { PurchaseRail } from './purchase-rail.ts';

/** A batch is looked up by its transfer, never by a block. */
const NO_BLOCK = 0;

/** The Gateway's rail: an authorization of the Gateway Wallet, judged by the Gateway alone, which holds the payer's deposit. */
export function createGatewayRail(gateway: OpenGateway, settler: PurchaseRail['settler']): PurchaseRail {
  return {
    contract: hexToBytes(gateway.wallet),
    settler,
    requirement: (plain) => gatewayRequirement(plain, gateway.wallet),
    checkAuthorization: checkGatewayAuthorization,
    checkSignature: gateway.checkSignature,
    verify: async (_id, authorization, known, signal) => {
      const reason = await gateway.verify(authorization, signal);
      if (reason === null) return NO_BLOCK;
      // What was handed over before may have been taken after all: then its buyer has paid and is owed the answer.
      const verdict = known ? await gateway.evidence.lookup(authorization) : null;
      if (verdict?.kind === 'settled') return NO_BLOCK;
      throw new PaymentRefused(reason);
    },
  };
}
