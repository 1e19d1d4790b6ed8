import { type ChainClient, ranked } from '../../chain/rpc/client.ts';
import { chainBusy } from '../../chain/rpc/failover.ts';
import { parseAnswer, quantity, type RpcCall, RpcError, toQuantity } from '../../chain/rpc/wire.ts';
import { TooMany, Unavailable, UpstreamFailed } from '../../errors.ts';
import { type Clock, nowSeconds, systemClock } from '../../lib/clock.ts';
import type { Log } from '../../lib/common.ts';
import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { createFairMinute } from '../../lib/limits/shares.ts';
import { recoverAddress } from '../../lib/secp256k1.ts';
import { shareRun } from '../../lib/tasks.ts';
import type { PaymentKey } from '../../store/ports/payments.ts';
import type { Ledger } from '../ledger.ts';
import type { Asker, PayerReading, Sale, SignedScheme } from '../rail.ts';
import { PaymentRefused, settlementUnknown } from '../refusal.ts';
import type { Authorization, Intent, SettlerStatus } from '../settler.ts';
import type { Evidence } from './evidence.ts';
import {
  createAdmissionReader,
  createEmptyPayers,
  createPayerReader,
  isRevert,
  WITHOUT_FAILURE,
} from './payer-reads.ts';
import {
  balanceOfCalldata,
  isValidSignatureCalldata,
  SETTLE_GAS,
  transferCalldata,
  zeroTransferCalldata,
} from './token.ts';

// The checks of a payment that need the chain, and the call that settles it.
// 1. The payer signed: by key, or its contract says so, as often as a budget allows.
// 2. Before the reservation: it is unused and the balance covers it. After it: earlier open payments too.
// 3. No sale begins while the token lets nothing through to the seller: the watch over it stands last.

interface AuthorizationChecksOptions {
  ledger: { sumOfOpen(key: PaymentKey, id: string, contracts: readonly Uint8Array[]): Promise<bigint> };
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  status: Pick<SettlerStatus, 'refusesCode'>;
  /** The contracts of all payments from the payer's balance, this rail's included. */
  balanceContracts: readonly Uint8Array[];
  /** The rail's own codes. `simulation` is by default the exact scheme's. */
  reasons: { readonly insufficient: string; readonly used: string; readonly simulation?: string };
  clock: Clock;
}

/** The checks of an authorization of the token itself, whichever call settles it. The chain decides. */
export function createAuthorizationChecks(
  options: AuthorizationChecksOptions,
): Pick<SignedScheme, 'review' | 'readPayer' | 'verify'> {
  const { ledger, check, evidence, status, balanceContracts, reasons, clock } = options;
  const empty = createEmptyPayers(clock);

  return {
    /** If used or expired, the logs decide, read as `collect`: what is kept for verified buyers stays theirs (R1). */
    review: async ({ payment: { authorization }, asker }, { checkedBlock }, mayLookUp) => {
      const { used, block } = await check.admit(authorization, asker, true);
      if (!used && BigInt(nowSeconds(clock)) < authorization.validBefore) return { kind: 'open' };
      if (!mayLookUp()) return { kind: 'unknown' };
      return evidence.lookup(authorization, checkedBlock ?? block, { rank: 'collect' });
    },
    readPayer: async ({ payment: { authorization }, asker, reverted }, signed) => {
      const payer = bytesToHex(authorization.from);
      const waitSeconds = empty.secondsBelow(payer, authorization.value);
      if (waitSeconds > 0) throw shortOfFunds(waitSeconds);
      const seen = signed ?? (await check.admit(authorization, asker, true));
      // A third party has sent it since the review. The next review will show whom it paid.
      if (seen.used && reverted) throw settlementUnknown();
      if (seen.used) throw new PaymentRefused(reasons.used);
      empty.note(payer, seen.balance);
      if (seen.balance < authorization.value) throw new PaymentRefused(reasons.insufficient);
      return seen;
    },
    /** The balance must cover open payments on every rail that takes from it, too. */
    verify: async ({ id, key, payment, asker }, { balance, hasCode, block }) => {
      const { authorization, contractCall: call = null } = payment;
      const promised = await ledger.sumOfOpen(key, id, balanceContracts);
      if (balance < authorization.value + promised) throw new PaymentRefused(reasons.insufficient);
      if (hasCode) {
        checkCodeTaken(status);
        await check.simulate({ authorization, call }, asker.signal).catch((error) => {
          const isRenamed = error instanceof PaymentRefused && reasons.simulation !== undefined;
          throw isRenamed ? new PaymentRefused(reasons.simulation) : error;
        });
      }
      return { checkedBlock: block, hasCode };
    },
  };
}

/** A refusal from memory. The payer may have received money since, so the error does not say that it lacks any. */
function shortOfFunds(waitSeconds: number): TooMany {
  const detail = 'the balance of this payer was too low a moment ago; present the payment again';
  return new TooMany('payer_short_of_funds', detail, waitSeconds);
}

const GAS = toQuantity(SETTLE_GAS);
/** ERC-1271's value of a valid signature: the selector of isValidSignature, padded to a word. */
const ERC1271_MAGIC = '0x1626ba7e';
/** Ten minutes: head and state may come from providers of different heights. Free, as a query spans 10,000 blocks. */
const HEAD_SLACK_BLOCKS = 1200;
/** A sender that cannot pay for the gas, in nodes' words. */
const CANNOT_PAY = /insufficient (funds|balance)/i;
/** Milliseconds that a gas price serves simulations. It moves by at most 2 % a block on Arc, and need not be exact. */
const GAS_PRICE_MS = 10_000;

/** Reads payers, asks contracts, simulates. `sender`: who will send the settlement, as far as it is known. */
export function createChainCheck(
  chain: ChainClient,
  usdc: `0x${string}`,
  sender: () => `0x${string}`,
  clock: Clock = systemClock,
) {
  const readPayer = createPayerReader(ranked(chain, 'settle'), usdc, clock);
  const admitPayer = createAdmissionReader(chain, usdc, clock);
  let price: { readonly text: string; readonly untilMs: number } | null = null;

  async function gasPrice(signal: AbortSignal): Promise<string> {
    if (price && price.untilMs > clock.nowMs()) return price.text;
    const wei = parseAnswer(quantity, await chain.request('eth_gasPrice', [], { signal }), 'gas price');
    price = { text: toQuantity(wei), untilMs: clock.nowMs() + GAS_PRICE_MS };
    return price.text;
  }

  /** Asks the payer's contract whether it signed (ERC-1271). An account without code gives no answer, which is a no. */
  async function contractSigned(
    authorization: Authorization,
    digest: Uint8Array,
    signal: AbortSignal,
  ): Promise<boolean> {
    const data = isValidSignatureCalldata(digest, authorization.signature);
    const call = { to: bytesToHex(authorization.from), data, gas: GAS };
    try {
      const answer = await chain.request<string>('eth_call', [call, 'latest'], { signal, rank: 'admit' });
      return answer.length === 66 && answer.startsWith(ERC1271_MAGIC);
    } catch (error) {
      if (isRevert(error)) return false;
      throw unreadable(error);
    }
  }

  /** Throws PaymentRefused if it would move no money. Sender and price are real: a contract could detect others. */
  async function simulate(payment: Pick<Intent, 'authorization' | 'call'>, signal: AbortSignal): Promise<void> {
    const call = { from: sender(), ...simulatedCall(usdc, payment) };
    const tryOut = (given: object) => chain.request('eth_call', [given, 'latest'], { signal });
    const gasPriceNow = await gasPrice(signal);
    try {
      // Where the settlement's sender is not known, our own address may hold no gas. Then the price is left out.
      await tryOut({ ...call, gasPrice: gasPriceNow }).catch((error) => {
        if (error instanceof RpcError && CANNOT_PAY.test(error.message)) return tryOut(call);
        throw error;
      });
    } catch (error) {
      if (isRevert(error)) throw new PaymentRefused('invalid_exact_evm_transaction_simulation_failed');
      throw unreadable(error);
    }
  }

  return {
    /** For a payment that we owe a settlement. It does not wait for other clients' turns. */
    read: async (authorization: Authorization, signal: AbortSignal): Promise<PayerReading> =>
      withSlack(chain, await readPayer(authorization, signal)),
    /** For an unverified payment, in its client's turn (`precedenceOf`) and within the providers' limits. */
    admit: async (authorization: Authorization, asker: Asker, isSigned: boolean): Promise<PayerReading> =>
      withSlack(chain, await admitPayer(authorization, asker.signal, asker.client, precedenceOf(asker, isSigned))),
    /** At the end of a block, in USDC base units. */
    balanceAt: async (account: Uint8Array, block: number, signal: AbortSignal): Promise<bigint> => {
      const call = { to: usdc, data: balanceOfCalldata(account) };
      const answer = await chain.request('eth_call', [call, toQuantity(block)], { signal, rank: 'settle' });
      return parseAnswer(quantity, answer, 'balance');
    },
    contractSigned,
    simulate,
  };
}

/**
 * Moves `block` to where a search starts, by the agreed head: from one provider's block a search could find nothing, or
 * take thousands of requests.
 */
function withSlack({ agreed }: ChainClient, reading: PayerReading): PayerReading {
  const head = agreed.witnesses < 2 ? reading.block : agreed.lastHead();
  if (head === null) throw chainBusy();
  return { ...reading, block: Math.max(0, head - HEAD_SLACK_BLOCKS) };
}

function simulatedCall(usdc: `0x${string}`, payment: Pick<Intent, 'authorization' | 'call'>) {
  const { to, data, gas } = settleCall(usdc, payment);
  return { to, data, gas: toQuantity(gas) };
}

export type ChainCheck = ReturnType<typeof createChainCheck>;

/** Clients without a failed call in this minute come first, then payments whose signature is already checked. */
function precedenceOf({ hasFailed }: Asker, isSigned: boolean): number {
  return (hasFailed ? 0 : WITHOUT_FAILURE) + (isSigned ? 1 : 0);
}

/** A node's own failure counts as an upstream failure, not as the buyer's. */
function unreadable(error: unknown): unknown {
  return error instanceof RpcError ? new UpstreamFailed('chain', 'a node refused the call', error) : error;
}

/** Contract signatures a minute for all clients. Each costs one request: unlike payer reads, they cannot share one. */
const CONTRACTS_PER_MINUTE = 120;
/** For one client: a fifteenth. A new wallet needs one check, and counts as a customer after its first payment. */
const MOST_OF_CLIENT = 8;
/** Further checks per minute, for payers that have paid here before. */
const CUSTOMERS_PER_MINUTE = 60;
/** Of these for one client: anyone can name such a payer, since the signature is not proven yet. */
const MOST_CUSTOMERS_OF_CLIENT = 4;

export interface ContractBudget {
  /** Counts a check and returns 0; or counts nothing and returns the seconds until another try. */
  take(asker: Pick<Asker, 'client' | 'hasFailed'>, hasPaid: boolean): number;
}

/** For all rails of a process. Who has paid has a part of its own, but not in the minute of an uncharged failure. */
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
  digestOf(authorization: Authorization): Uint8Array;
  status: Pick<SettlerStatus, 'refusesCode'>;
  ledger: Pick<Ledger, 'hasSettled'>;
  contracts: ContractBudget;
}

/** The cheapest step first: the payer's own key, whether it has code, and last its contract (ERC-1271). */
export function createSignatureCheck({ check, digestOf, status, ledger, contracts }: SignatureCheckOptions) {
  return async ({ payment: { authorization }, key, asker }: Sale): Promise<PayerReading | null> => {
    const digest = digestOf(authorization);
    const signer = recoverAddress(digest, authorization.signature);
    if (signer && Buffer.compare(signer, authorization.from) === 0) return null;
    const seen = await check.admit(authorization, asker, false);
    if (!seen.hasCode) throw new PaymentRefused('invalid_exact_evm_signature');
    checkCodeTaken(status);
    const waitSeconds = contracts.take(asker, await ledger.hasSettled(key));
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
export function checkCodeTaken(status: Pick<SettlerStatus, 'refusesCode'>): void {
  const reason = status.refusesCode();
  if (!reason) return;
  const detail = `payments of accounts with code cannot be settled now: ${reason}; a plain account can pay`;
  throw new Unavailable('settlement_unavailable', detail, 3600);
}

/** Gas of a rail's own call in a batch. The embedded network uses 97,504, at first 145,000; Arc's USDC costs more. */
export const CALL_GAS = 200_000n;
/** Gas limit of such a call alone: twice that, because a payer that uses 60 % of it is banned (relayer/verdicts.ts). */
export const LONE_CALL_GAS = 2n * CALL_GAS;

/** Settles one payment. `gas`: the limit of a transaction that holds nothing else. */
export interface SettleCall {
  readonly to: `0x${string}`;
  readonly data: `0x${string}`;
  readonly gas: bigint;
}

export function settleCall(
  usdc: `0x${string}`,
  { authorization, call }: Pick<Intent, 'authorization' | 'call'>,
): SettleCall {
  if (!call) return { to: usdc, data: transferCalldata(authorization), gas: SETTLE_GAS };
  return { to: bytesToHex(call.to), data: bytesToHex(call.data), gas: LONE_CALL_GAS };
}

// Watches whether the token is paused or has blocklisted the seller (FiatToken can do both), by a simulated transfer of
// zero to the seller. Then every settlement reverts, and each sale would cost one transaction. So sales stop.

interface TokenWatchOptions {
  chain: ChainClient;
  usdc: `0x${string}`;
  payTo: `0x${string}`;
  /** The sender of the test transfer: the settlements' sender where it is known. */
  sender(): `0x${string}`;
  clock: Clock;
  log: Pick<Log, 'info' | 'error'>;
}

/** Milliseconds between two tests while the token works. So a pause is noticed before it costs a transaction. */
const CALM_MS = 60_000;

/** Providers that must say that the token refuses, where two or more are configured. */
const ENOUGH = 2;

export interface TokenWatch {
  /** Concurrent callers share a test. False once the token refuses. Never rejects: without an answer the last stays. */
  check(): Promise<boolean>;
  /** Tests once per CALM_MS, and at each call while the token refuses. */
  refresh(): Promise<void>;
  refusal(): string | null;
}

export function createTokenWatch({ chain, usdc, payTo, sender, clock, log }: TokenWatchOptions): TokenWatch {
  const settling = ranked(chain, 'settle');
  let isShut = false;
  let triedMs = Number.NEGATIVE_INFINITY;

  async function tryOut(): Promise<void> {
    const transfer = { from: sender(), to: usdc, data: zeroTransferCalldata(hexToBytes(payTo)) };
    const call = { method: 'eth_call', params: [transfer, 'latest'] };
    try {
      await settling.request(call.method, call.params);
      set(false);
    } catch (error) {
      if (isRevert(error)) await confirm(call);
    }
    triedMs = clock.nowMs();
  }

  /** Asks a provider of each host, because one alone must not stop sales. */
  async function confirm(call: RpcCall): Promise<void> {
    if (chain.agreed.witnesses < ENOUGH) return set(true);
    const heard = (await settling.each([call]).catch(() => [])).flatMap(([outcome]) => outcome ?? []);
    const refusals = heard.filter((outcome) => 'error' in outcome && isRevert(outcome.error)).length;
    if (refusals >= ENOUGH) set(true);
    else if (heard.some((outcome) => 'result' in outcome)) set(false);
  }

  function set(shut: boolean): void {
    if (shut && !isShut) log.error({ usdc, payTo }, 'ALERT: the token lets nothing through to the seller; sales stop');
    if (!shut && isShut) log.info({ usdc, payTo }, 'the token lets payments through again');
    isShut = shut;
  }

  const tryShared = shareRun(tryOut);
  async function check(): Promise<boolean> {
    await tryShared();
    return !isShut;
  }

  return {
    check,
    refresh: async () => {
      if (isShut || clock.nowMs() - triedMs >= CALM_MS) await check();
    },
    refusal: () => (isShut ? 'the USDC token is paused, or refuses the seller' : null),
  };
}
