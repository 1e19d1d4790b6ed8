import { Unavailable } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex, hexToBytes } from '../../../lib/hex.ts';
import { type Authorization, paymentKey } from '../../authorization.ts';
import { checkAccepted } from '../../evm/accepted.ts';
import type { ServingTimes } from '../../evm/eip3009.ts';
import { readSigned } from '../../evm/eip3009-payload.ts';
import { createSharedReads, PAYER_READ_TIMES } from '../../evm/shared-reads.ts';
import type { Ledger } from '../../ledger.ts';
import type { PurchaseRail, Verified } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import { ALREADY_USED } from '../../settler.ts';
import { createGatewayCheck } from './checks.ts';
import { gatewayRequirement } from './requirement.ts';
import type { OpenGateway } from './service.ts';

/** A batch is looked up by its transfer, not by a block. The Gateway takes no payments of accounts with code. */
const VERIFIED: Verified = { checkedBlock: 0, hasCode: false };
/** Depositors in one request. The service publishes no limit, and this many fit into any request. */
const MOST_DEPOSITORS = 20;
/** Depositors that may wait, for twenty requests. A client without a place is refused at once. */
const PLACES = 400;
/** How long a depositor waits, in milliseconds. Then it is refused. */
const WAIT_MS = 4000;
/** The Gateway's own error code. */
const INSUFFICIENT = 'insufficient_balance';

interface GatewayRailOptions {
  gateway: OpenGateway;
  status: PurchaseRail['status'];
  ledger: Pick<Ledger, 'openBefore'>;
  network: string;
  times: Pick<ServingTimes, 'handlerTimeoutMs'>;
  clock: Clock;
}

/** The Gateway's rail: an authorization of the Gateway Wallet. Only the Gateway decides about it, because it holds the payer's deposit. */
export function createGatewayRail(options: GatewayRailOptions): PurchaseRail {
  const { gateway, status, ledger, network, times, clock } = options;
  const contract = hexToBytes(gateway.wallet);
  const check = createGatewayCheck(times);
  const readDeposit = createSharedReads<Uint8Array, bigint>({
    ask: (depositors) => gateway.client.balances(depositors.map(bytesToHex)),
    ...{ ...PAYER_READ_TIMES, most: MOST_DEPOSITORS, clock },
    queue: { places: () => PLACES, waitMs: WAIT_MS, refusal: busy },
  });

  /** Throws PaymentRefused when the authorization is used. Used before its first presentation here, it paid another ledger or for something else. */
  async function checkUnused(authorization: Authorization): Promise<void> {
    if (await gateway.evidence.isUsed(authorization)) throw new PaymentRefused(ALREADY_USED);
  }

  return {
    contract,
    status,
    read: (payload) => readSigned(payload, contract),
    checkAccepted,
    requirement: (plain) => gatewayRequirement(plain, gateway.wallet),
    check: ({ authorization }, requirement, now) => check(authorization, requirement, now),
    checkSignature: async ({ authorization }) => {
      await gateway.checkSignature(authorization);
      return null;
    },
    /** The Gateway may have taken a payment that was handed over before. Its transfers decide. */
    review: async ({ authorization }, _known, { mayLookUp }) =>
      mayLookUp() ? gateway.evidence.lookup(authorization) : { kind: 'unknown' },
    /** Refuses a deposit below the price. */
    look: async ({ authorization }, { client, signal }) => {
      const balance = await readDeposit(authorization.from, signal, client);
      if (balance < authorization.value) throw new PaymentRefused(INSUFFICIENT);
      return { used: false, balance, hasCode: false, block: 0 };
    },
    /**
     * 1. The deposit must also cover the payer's earlier open payments.
     * 2. The nonce must be unused, unless we handed the authorization over before.
     * 3. The Gateway must find no fault in the form.
     */
    verify: async (id, { authorization }, { balance }, { asker: { signal }, isAgain }) => {
      const promised = await ledger.openBefore(paymentKey(authorization, network, contract), id);
      if (balance < authorization.value + promised) throw new PaymentRefused(INSUFFICIENT);
      const [reason] = await Promise.all([
        gateway.verify(authorization, signal),
        isAgain ? undefined : checkUnused(authorization),
      ]);
      if (reason !== null) throw new PaymentRefused(reason);
      return VERIFIED;
    },
  };
}

function busy(): Unavailable {
  return new Unavailable(
    'gateway_busy',
    'Too many payments over the Gateway wait to be looked at; try again shortly.',
    1,
  );
}
