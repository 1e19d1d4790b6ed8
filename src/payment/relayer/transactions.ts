import { decodeFunctionResult, encodeFunctionResult, parseAbi, toFunctionSelector } from 'viem/utils';
import { bytesToHex, hexToBytes, rlpBytes, rlpInteger, rlpList } from '../../lib/hex.ts';
import { addressOf, keccak256, signDigest } from '../../lib/secp256k1.ts';
import type { Intent, Operation } from '../settler.ts';
import { type SettleCall, settleCall } from '../usdc/checks.ts';
import type { TransactionReceipt } from '../usdc/evidence.ts';
import { bytesWords, hexWord, MULTICALL3 } from '../usdc/token.ts';
import type { GasModel, Load, MinedCost, Price, Prices, RailCost } from './gas.ts';

// What the relayer sends: jobs, the flights that carry them, nonces, Multicall3's batches, the signing wallet, and
// costs. A flight is a nonce with its transaction and replacements. It stays until its nonce is used, or no node has
// accepted a transaction under it: a gap would hold all later nonces.

export interface Job {
  readonly intent: Intent;
  /** Unix milliseconds: when the intent was submitted, and when it last joined the queue. */
  readonly sinceMs: number;
  queuedMs: number;
  ended: boolean;
  /** Most payments of its transaction. Halved after a batch that did not settle it; 1 for a payer with code. */
  maxGroup: number;
  /** The relayer's nonces under which it may have been sent to a node. */
  readonly nonces: Set<number>;
  /** Whether its payer was ever seen with code. */
  hasCode: boolean;
  wasInFailedBatch: boolean;
  /** Only a mined transaction can show its end. It is sent alone, even if a simulation refuses it. */
  mustSend: boolean;
  /** Failed reads of its payer in a row. */
  unread: number;
  /** Unix milliseconds since which the chain cannot show its end. Such a job is looked up before it is sent again. */
  unresolvedMs: number | null;
}

export function newJob(intent: Intent, nowMs: number): Job {
  return {
    intent,
    sinceMs: nowMs,
    queuedMs: nowMs,
    ended: false,
    // An account with code can fail the other payments of its batch.
    maxGroup: intent.hasCode ? 1 : Number.MAX_SAFE_INTEGER,
    nonces: new Set(),
    unread: 0,
    unresolvedMs: null,
    hasCode: intent.hasCode,
    wasInFailedBatch: false,
    mustSend: false,
  };
}

/** It shares a transaction with nothing. The members are as in `Job`. */
export interface OperationJob {
  readonly operation: Operation;
  queuedMs: number;
  ended: boolean;
  readonly nonces: Set<number>;
  mustSend: boolean;
  unresolvedMs: number | null;
}

/** Why an operation is looked up: a simulation refused it, it was mined without its event, or its flight was lost. */
export type Unconfirmed = { readonly after: 'refused' | 'mined'; readonly reason: string } | { readonly after: 'lost' };

export function newOperationJob(operation: Operation, nowMs: number): OperationJob {
  return { operation, queuedMs: nowMs, ended: false, nonces: new Set(), mustSend: false, unresolvedMs: null };
}

/** Payments (`jobs`), or one operation. */
export interface Transaction extends Signed {
  readonly jobs: readonly Job[];
  readonly operationJob: OperationJob | null;
  readonly gas: bigint;
  readonly price: Price;
}

/** A nonce in use, with its transaction and the replacements. Only one of them can be mined. */
export interface Flight {
  readonly nonce: number;
  /** Oldest first, never empty. */
  readonly transactions: Transaction[];
  /** When one of them was last sent, in Unix milliseconds; null before the first time. */
  sentMs: number | null;
  /** How often it was sent again for being late. */
  resends: number;
}

export function newest(flight: Flight): Transaction {
  const transaction = flight.transactions.at(-1);
  if (!transaction) throw new Error('a flight without a transaction');
  return transaction;
}

export function jobsOf(flight: Flight): Job[] {
  return [...new Set(flight.transactions.flatMap(({ jobs }) => jobs))];
}

export function loadOf(jobs: readonly Job[]): Load {
  const calls = jobs.filter(({ intent }) => intent.call !== null).length;
  return { transfers: jobs.length - calls, calls };
}

interface FlightsOptions {
  usdc: `0x${string}`;
  wallet: Pick<Wallet, 'sign'>;
  nonces: Nonces;
  gas: Pick<GasModel, 'limit'>;
}

type Cargo = Pick<Transaction, 'jobs' | 'operationJob'>;

/** One payment goes to its contract, several to Multicall3. Equal arguments give an equal transaction. */
function sign(options: FlightsOptions, nonce: number, { jobs, operationJob }: Cargo, price: Price): Transaction {
  const { to, data, gas } = operationJob ? operationCall(operationJob) : paymentsCall(options, jobs);
  const signed = options.wallet.sign({ to, data, gas, nonce, ...price });
  return { ...signed, jobs, operationJob, gas, price };
}

function paymentsCall({ usdc, gas: model }: FlightsOptions, jobs: readonly Job[]): SettleCall {
  const gas = model.limit(loadOf(jobs));
  const calls = jobs.map(({ intent }) => settleCall(usdc, intent));
  const [only] = calls;
  return only && calls.length === 1 ? { ...only, gas } : { to: MULTICALL3, data: batchCalldata(calls), gas };
}

function operationCall({ operation: { to, data, gas } }: OperationJob): SettleCall {
  return { to: bytesToHex(to), data: bytesToHex(data), gas };
}

export function createFlights(options: FlightsOptions) {
  const { nonces } = options;
  const flights = new Map<number, Flight>();
  // Found too low for a nonce by a node: a third party's transaction waits there, or one that this process forgot.
  const refused = new Map<number, Price>();

  function priceUnder(nonce: number, prices: Prices): Price {
    for (const past of refused.keys()) if (nonces.isPast(past)) refused.delete(past);
    const tooLittle = refused.get(nonce);
    return tooLittle ? (prices.above(tooLittle) ?? tooLittle) : prices.offer;
  }

  function close(flight: Flight): void {
    if (flights.get(flight.nonce) === flight) flights.delete(flight.nonce);
  }

  function openFor(cargo: Cargo, prices: Prices): Flight {
    const nonce = nonces.next(new Set(flights.keys()));
    const transactions = [sign(options, nonce, cargo, priceUnder(nonce, prices))];
    const flight: Flight = { nonce, transactions, sentMs: null, resends: 0 };
    flights.set(nonce, flight);
    return flight;
  }

  return {
    close,
    all: (): Flight[] => [...flights.values()],
    size: (): number => flights.size,
    has: (flight: Flight): boolean => flights.get(flight.nonce) === flight,
    open: (jobs: readonly Job[], prices: Prices): Flight => openFor({ jobs, operationJob: null }, prices),
    openOperation: (operationJob: OperationJob, prices: Prices): Flight => openFor({ jobs: [], operationJob }, prices),
    /** A node found the price too low for the nonce. The next transaction under it offers more. */
    outbid: (flight: Flight): void => void refused.set(flight.nonce, newest(flight).price),
    /** Removes the newest transaction, which was never sent. Frees the nonce if it was the only one. */
    dropUnsent(flight: Flight): void {
      flight.transactions.pop();
      if (flight.transactions.length === 0) close(flight);
    },
    /** Replaces the newest transaction, which was never sent. */
    replaceUnsent(flight: Flight, jobs: readonly Job[]): void {
      const { price } = newest(flight);
      flight.transactions.pop();
      flight.transactions.push(sign(options, flight.nonce, { jobs, operationJob: null }, price));
    },
    /** Signs a dearer one for these jobs or the flight's operation. False when it would pass the ceiling. */
    replace(flight: Flight, jobs: readonly Job[], prices: Prices): boolean {
      const { price: last, operationJob } = newest(flight);
      const price = prices.above(last);
      if (price) flight.transactions.push(sign(options, flight.nonce, { jobs, operationJob }, price));
      return price !== null;
    },
    /** A lower nonce is free: the flight would wait for ever. */
    isBehindGap: (flight: Flight): boolean => nonces.next(new Set(flights.keys())) < flight.nonce,
  };
}

export type Flights = ReturnType<typeof createFlights>;

/** Gives the lowest nonce that the chain has not used and no flight holds: one that a node refused comes first. */
export function createNonces() {
  // Null until the chain is asked, and once a third party may have used a nonce.
  let floor: number | null = null;
  // By our own receipts, which no node can take back.
  let proven = 0;
  let provenBlock = 0;

  return {
    known: (): boolean => floor !== null,
    /** Takes a node's count of mined transactions. It may lag behind or lie. */
    learn(mined: number): void {
      floor = Math.max(mined, proven);
    },
    /** Ours with this nonce was mined in this block; all lower nonces were used by then. */
    passed(nonce: number, block: number): void {
      proven = Math.max(proven, nonce + 1);
      provenBlock = Math.max(provenBlock, block);
      if (floor !== null) floor = Math.max(floor, proven);
    },
    /** Whether no transaction under this nonce can still be mined. */
    isPast: (nonce: number): boolean => nonce < proven,
    /** At this block, each transaction under a past nonce is mined or never will be. */
    provenBlock: (): number => provenBlock,
    forget(): void {
      floor = null;
    },
    next(held: ReadonlySet<number>): number {
      if (floor === null) throw new Error('the chain was not asked for the nonce yet');
      let nonce = floor;
      while (held.has(nonce)) nonce++;
      return nonce;
    },
  };
}

export type Nonces = ReturnType<typeof createNonces>;

const abi = parseAbi([
  'struct Call3 { address target; bool allowFailure; bytes callData; }',
  'struct Result { bool success; bytes returnData; }',
  'function aggregate3(Call3[] calldata calls) payable returns (Result[] memory returnData)',
]);

const MAY_FAIL_AND_OFFSET = hexWord(1n) + hexWord(3n * 32n);
const AGGREGATE3 = toFunctionSelector('aggregate3((address,bool,bytes)[])');

/** One call that settles many payments. A failed one does not fail the others. */
export function batchCalldata(settling: readonly Pick<SettleCall, 'to' | 'data'>[]): `0x${string}` {
  // Of each call: the target, the permission to fail, the offset of its calldata.
  const calls = settling.map(
    ({ to, data }) => hexWord(hexToBytes(to)) + MAY_FAIL_AND_OFFSET + bytesWords(hexToBytes(data)),
  );
  let offset = 32 * calls.length;
  const offsets = calls.map((call) => {
    const own = hexWord(BigInt(offset));
    offset += call.length / 2;
    return own;
  });
  const list = [hexWord(32n), hexWord(BigInt(calls.length)), ...offsets, ...calls];
  return `${AGGREGATE3}${list.join('')}`;
}

/** Which of the batch's simulated calls succeeded, in order. Throws when the answer has another form. */
export function batchOutcomes(answer: `0x${string}`, count: number): boolean[] {
  const results = decodeFunctionResult({ abi, functionName: 'aggregate3', data: answer });
  if (results.length !== count) throw new Error('the simulated batch answered for another number of calls');
  return results.map(({ success }) => success);
}

/** The answer of a simulated batch whose calls ended like this. `batchOutcomes` reads it. */
export function batchAnswer(outcomes: readonly boolean[]): `0x${string}` {
  const result = outcomes.map((success) => ({ success, returnData: '0x' as const }));
  return encodeFunctionResult({ abi, functionName: 'aggregate3', result });
}

/** Fees are in wei per unit of gas. */
interface TransactionFields {
  readonly to: `0x${string}`;
  readonly data: `0x${string}`;
  readonly gas: bigint;
  readonly nonce: number;
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

interface Signed {
  readonly raw: `0x${string}`;
  readonly hash: `0x${string}`;
}

/** EIP-2718's type of an EIP-1559 transaction, before the fields. */
const TYPE = Buffer.from([2]);

/** Pays the gas. Native: in JavaScript a signature, or a library's encoding, blocks the event loop for milliseconds. */
export function createWallet(privateKey: `0x${string}`, chainId: number) {
  const key = hexToBytes(privateKey);
  const address = addressOf(key);

  function sign({ to, data, gas, nonce, maxFeePerGas, maxPriorityFeePerGas }: TransactionFields): Signed {
    const fields = [
      ...[chainId, nonce, maxPriorityFeePerGas, maxFeePerGas, gas].map(rlpInteger),
      rlpBytes(hexToBytes(to)),
      // No value; an empty access list after the data.
      rlpInteger(0),
      rlpBytes(hexToBytes(data)),
      rlpList([]),
    ];
    const digest = keccak256(Buffer.concat([TYPE, rlpList(fields)]));
    const { signature, recovery } = signDigest(digest, key);
    const halves = [signature.subarray(0, 32), signature.subarray(32)].map((half) => BigInt(bytesToHex(half)));
    const raw = Buffer.concat([TYPE, rlpList([...fields, ...[recovery, ...halves].map(rlpInteger)])]);
    return { raw: bytesToHex(raw), hash: bytesToHex(keccak256(raw)) };
  }

  return { address, sign };
}

export type Wallet = ReturnType<typeof createWallet>;

/** One provider says the price. Where it is missing, 0 or too high, the maximum counts: none pays more, or nothing. */
export function costOf({ jobs, price }: Transaction, receipt: TransactionReceipt, settled: number): MinedCost {
  const gasUsed = BigInt(receipt.gasUsed);
  const said = BigInt(receipt.effectiveGasPrice ?? 0);
  const gasPrice = said > 0n && said <= price.maxFeePerGas ? said : price.maxFeePerGas;
  const payments = jobs.length;
  const wei = gasUsed * gasPrice;
  return {
    wei,
    gasUsed,
    gasPrice,
    payments,
    settled,
    failedWei: payments === 0 ? 0n : (wei * BigInt(payments - settled)) / BigInt(payments),
  };
}

/** Parts of a batch's gas: a deposit into a channel used 97,504 and a transfer 48,700 (docs/benchmarks.md). */
const SHARES = { call: 2, transfer: 1 };
const UNNAMED = 'other';

/** Among its payments' rails, or to its operation's. */
export function railCostsOf(
  { jobs, operationJob }: Transaction,
  { wei, gasUsed }: Pick<MinedCost, 'wei' | 'gasUsed'>,
  settled: ReadonlySet<Job>,
): RailCost[] {
  const parts = new Map<string, { share: number; settled: number }>();
  const add = (rail = UNNAMED, share: number, paid: number): void => {
    const before = parts.get(rail) ?? { share: 0, settled: 0 };
    parts.set(rail, { share: before.share + share, settled: before.settled + paid });
  };
  if (operationJob) add(operationJob.operation.rail, 1, 0);
  for (const job of jobs)
    add(job.intent.rail, job.intent.call ? SHARES.call : SHARES.transfer, settled.has(job) ? 1 : 0);
  const whole = [...parts.values()].reduce((sum, { share }) => sum + share, 0);
  return [...parts].map(([rail, part]) => ({
    rail,
    settled: part.settled,
    wei: (Number(wei) * part.share) / whole,
    gasUsed: (Number(gasUsed) * part.share) / whole,
  }));
}
