import type { PaymentKey } from '../store/ports/sales.ts';

/** An EIP-3009 authorization as bytes and numbers: amounts in USDC base units, times in Unix seconds. */
export interface Authorization {
  readonly from: Uint8Array;
  readonly to: Uint8Array;
  readonly value: bigint;
  readonly validAfter: bigint;
  readonly validBefore: bigint;
  readonly nonce: Uint8Array;
  readonly signature: Uint8Array;
  /**
   * The contract to which the recipient passes the money on in the same transaction, where the payment is a call of that contract. The authorization's
   * fields can be signed for a plain transfer too, which any third party may send. That leaves the money with the recipient and pays nobody.
   */
  readonly passedTo?: Uint8Array;
}

/** The ledger's key of an authorization. */
export function paymentKey(authorization: Authorization, network: string, contract: Uint8Array): PaymentKey {
  return { network, contract, payer: authorization.from, nonce: authorization.nonce };
}
