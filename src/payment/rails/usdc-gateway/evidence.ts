import { type Clock, nowSeconds } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';
import type { Found } from '../../settler.ts';
import { EXPIRED, NONCE_USED } from '../../settler.ts';
import { transferIdBytes } from '../../transaction-id.ts';
import type { GatewayClient, GatewayTransfer } from './client.ts';

/** Time that the Gateway may still need to record a transfer after its authorization has expired. */
const EXPIRY_MARGIN_SECONDS = 60n;
/** The Gateway does not report a batch's block. Block 0 of the chain holds no payment. */
const NO_BLOCK = 0;

/**
 * Reads from the Gateway how authorizations ended, as `createEvidence` reads it from the chain. On this rail a payment is paid once the Gateway has
 * accepted its transfer. From then on the payer's balance is locked, and the Gateway guarantees the batch.
 */
export function createGatewayEvidence(client: Pick<GatewayClient, 'search'>, network: string, clock: Clock) {
  /**
   * 1. Finds the transfer with this payer and nonce. Unknown when there is more than one, when it is not the one asked for, or when its amount cannot
   *    be read.
   * 2. No transfer: open, or failed when the authorization has expired.
   * 3. The transfer failed: nothing was taken, and the Gateway will not take it again.
   * 4. The transfer pays us this amount: settled. Another recipient or amount: used elsewhere.
   */
  async function lookup(authorization: Authorization): Promise<Found> {
    const { from, nonce } = authorization;
    const transfers = await client.search(bytesToHex(from), bytesToHex(nonce));
    const [transfer, ...others] = transfers;
    if (others.length > 0) return { kind: 'unknown' };
    if (!transfer) return absent(authorization, BigInt(nowSeconds(clock)));
    if (!isOf(transfer, authorization)) return { kind: 'unknown' };
    if (transfer.status === 'failed') return { kind: 'failed', reason: 'unexpected_settle_error' };
    const paid = unitsOf(transfer.amount);
    if (paid === null) return { kind: 'unknown' };
    if (paid !== authorization.value || !isHere(transfer, authorization, network))
      return { kind: 'failed', reason: NONCE_USED };
    const transaction = transferIdBytes(transfer.id);
    return transaction ? { kind: 'settled', transaction, block: NO_BLOCK, paid } : { kind: 'unknown' };
  }

  return {
    lookup,
    /** Whether the Gateway has any transfer with this payer and nonce. Rejects when the Gateway does not say. */
    isUsed: async ({ from, nonce }: Authorization): Promise<boolean> =>
      (await client.search(bytesToHex(from), bytesToHex(nonce))).length > 0,
  };
}

function absent({ validBefore }: Authorization, now: bigint): Found {
  if (now < validBefore + EXPIRY_MARGIN_SECONDS) return { kind: 'open' };
  return { kind: 'failed', reason: EXPIRED };
}

function isOf(transfer: GatewayTransfer, { from, nonce }: Authorization): boolean {
  const sameNonce = !transfer.nonce || transfer.nonce.toLowerCase() === bytesToHex(nonce);
  return sameNonce && transfer.fromAddress.toLowerCase() === bytesToHex(from);
}

function isHere(transfer: GatewayTransfer, { to }: Authorization, network: string): boolean {
  const here = [transfer.sendingNetwork, transfer.recipientNetwork].every(
    (name) => !name?.startsWith('eip155:') || name === network,
  );
  return here && transfer.toAddress.toLowerCase() === bytesToHex(to);
}

/** Reads an amount in USDC base units from an integer of base units or a decimal of whole USDC. Null for any other text. */
function unitsOf(amount: string): bigint | null {
  const parts = /^(\d{1,30})(?:\.(\d{1,6})0*)?$/.exec(amount);
  if (!parts) return null;
  const [, whole = '0', fraction] = parts;
  return fraction === undefined ? BigInt(whole) : BigInt(whole + fraction.padEnd(6, '0'));
}
