import { TooMany, Unavailable } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { createFairMinute } from '../../lib/limits/fair-minute.ts';
import { recoverAddress } from '../../lib/secp256k1.ts';
import type { Authorization } from '../authorization.ts';
import type { Asker, Look, PurchaseRail } from '../rail.ts';
import { PaymentRefused } from '../refusal.ts';
import type { ChainCheck } from './chain-check.ts';

/** Contract signatures that are checked per minute for all clients together. Each costs one request: unlike payer reads, they cannot share one. */
const CONTRACTS_PER_MINUTE = 120;
/** For one client: a fifteenth of the total. A new wallet needs one check, and counts as a customer after its first payment. */
const MOST_OF_CLIENT = 8;
/** Further checks per minute, for payers that have paid here before. */
const CUSTOMERS_PER_MINUTE = 60;
/** Of these for one client: anyone can name such a payer, since the signature is not proven yet. */
const MOST_CUSTOMERS_OF_CLIENT = 4;

/** Limits how many contracts are asked for their signature. */
export interface ContractBudget {
  /** Counts a check for a client and returns 0. Or counts nothing and returns the seconds until it may be tried again. */
  take(asker: Pick<Asker, 'client' | 'hasFailed'>, hasPaid: boolean): number;
}

/**
 * The budget of a process. All rails share one, so that a second way to pay does not double what a client may cause. A payer that has paid before is
 * checked out of what is kept for such payers, then out of the rest. After an uncharged failure, as of a wrong signature, its client gets nothing of
 * what is kept in this minute.
 */
export function createContractBudget(clock: Clock): ContractBudget {
  const newcomers = createFairMinute(CONTRACTS_PER_MINUTE, clock, MOST_OF_CLIENT);
  const customers = createFairMinute(CUSTOMERS_PER_MINUTE, clock, MOST_CUSTOMERS_OF_CLIENT);
  return {
    take({ client, hasFailed }, hasPaid) {
      const isKeptFor = hasPaid && !hasFailed && customers.take(client) === 0;
      return isKeptFor ? 0 : newcomers.take(client);
    },
  };
}

interface SignatureCheckOptions {
  check: Pick<ChainCheck, 'admit' | 'contractSigned'>;
  /** The digest that the payer signed. */
  digestOf(authorization: Authorization): Uint8Array;
  status: Pick<PurchaseRail['status'], 'refusesCode'>;
  /** Whether a payment of this payer has ever settled here. */
  hasPaid(authorization: Authorization): Promise<boolean>;
  contracts: ContractBudget;
}

/**
 * Checks that the payer signed. The cheapest step comes first:
 * 1. Recover the signer natively. The payer's own key ends the check.
 * 2. Read whether the payer has code, in a request that payers share. Refuse a payer without code.
 * 3. Refuse while accounts with code are not settled.
 * 4. Ask the payer's contract (ERC-1271), as often as the budget allows.
 */
export function createSignatureCheck({ check, digestOf, status, hasPaid, contracts }: SignatureCheckOptions) {
  return async (authorization: Authorization, asker: Asker): Promise<Look | null> => {
    const digest = digestOf(authorization);
    const signer = recoverAddress(digest, authorization.signature);
    if (signer && Buffer.compare(signer, authorization.from) === 0) return null;
    const seen = await check.admit(authorization, asker, false);
    if (!seen.hasCode) throw new PaymentRefused('invalid_exact_evm_signature');
    checkCodeTaken(status);
    const waitSeconds = contracts.take(asker, await hasPaid(authorization));
    if (waitSeconds > 0)
      throw new TooMany(
        'contract_signatures',
        'too many signatures of contracts were checked this minute',
        waitSeconds,
      );
    if (await check.contractSigned(authorization, digest, asker.signal)) return seen;
    throw new PaymentRefused('invalid_exact_evm_signature');
  };
}

/** Throws 503 while accounts with code are not settled. */
export function checkCodeTaken(status: Pick<PurchaseRail['status'], 'refusesCode'>): void {
  const reason = status.refusesCode?.();
  if (!reason) return;
  const detail = `payments of accounts with code cannot be settled now: ${reason}; a plain account can pay`;
  throw new Unavailable('settlement_unavailable', detail, 3600);
}
