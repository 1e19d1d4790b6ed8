import type { Clock } from '../../../lib/clock.ts';
import { hexToBytes } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';
import { checkAccepted } from '../../evm/accepted.ts';
import { createAuthorizationChecks } from '../../evm/authorization-checks.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import { checkAuthorization, type ValidityBounds } from '../../evm/eip3009.ts';
import { readSigned } from '../../evm/eip3009-payload.ts';
import type { Evidence } from '../../evm/evidence.ts';
import type { Ledger } from '../../ledger.ts';
import type { Asker, Look, PurchaseRail } from '../../rail.ts';
import { NOT_OFFERED, PaymentRefused } from '../../refusal.ts';
import { NONCE_USED } from '../../settler.ts';

interface ExactRailOptions {
  ledger: Pick<Ledger, 'openBefore'>;
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  status: PurchaseRail['status'];
  checkSignature(authorization: Authorization, asker: Asker): Promise<Look | null>;
  validity: ValidityBounds;
  /** Whether a 402 lists this rail for a route of this price, in USDC base units. */
  isSoldAt(price: bigint): boolean;
  balanceContracts: readonly Uint8Array[];
  network: string;
  usdc: `0x${string}`;
  clock: Clock;
}

/** x402's codes for this rail. */
const REASONS = { insufficient: 'invalid_exact_evm_insufficient_balance', used: NONCE_USED };

const OTHER_RAILS =
  'This route is not sold for a lone transfer (scheme exact). Sign for one of the entries that accepts has now.';

/** The plain rail: an authorization of the token itself. The chain decides about it, also where a facilitator settles it. */
export function createExactRail(options: ExactRailOptions): PurchaseRail {
  const { status, checkSignature, validity, isSoldAt } = options;
  const contract = hexToBytes(options.usdc);

  return {
    contract,
    status,
    read: (payload) => readSigned(payload, contract),
    checkAccepted: (accepted, requirement) => {
      checkAccepted(accepted, requirement);
      if (!isSoldAt(BigInt(requirement.amount))) throw new PaymentRefused(NOT_OFFERED, { detail: OTHER_RAILS });
    },
    requirement: (plain) => plain,
    check: ({ authorization }, requirement, now) => checkAuthorization(authorization, requirement, now, validity),
    checkSignature: ({ authorization }, asker) => checkSignature(authorization, asker),
    ...createAuthorizationChecks({ ...options, contract, reasons: REASONS }),
  };
}
