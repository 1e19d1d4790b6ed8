import { bytesToHex } from '../../../lib/hex.ts';
import { type SettleCall, settleCall } from '../../usdc/checks.ts';
import type { Price, Prices } from './fees.ts';
import type { GasModel, Load } from './gas-model.ts';
import type { Job, OperationJob } from './job.ts';
import { batchCalldata, MULTICALL3 } from './multicall.ts';
import type { Nonces } from './nonces.ts';
import type { Signed, Wallet } from './wallet.ts';

/** A signed transaction and its jobs: payments, or one operation. */
export interface Transaction extends Signed {
  /** Empty for an operation. */
  readonly jobs: readonly Job[];
  /** Null for payments. */
  readonly operationJob: OperationJob | null;
  readonly gas: bigint;
  readonly price: Price;
}

/** A nonce of the relayer that is in use, with its transaction and its replacements. Only one of them can be mined. */
export interface Flight {
  readonly nonce: number;
  /** Oldest first, never empty. */
  readonly transactions: Transaction[];
  /** When the last of its transactions was sent, in Unix milliseconds; null before the first time. */
  sentMs: number | null;
  /** How often it was sent again because it was late. */
  resends: number;
}

/** The transaction that was signed last. */
export function newest(flight: Flight): Transaction {
  const transaction = flight.transactions.at(-1);
  if (!transaction) throw new Error('a flight without a transaction');
  return transaction;
}

/** The jobs of all transactions of a flight. */
export function jobsOf(flight: Flight): Job[] {
  return [...new Set(flight.transactions.flatMap(({ jobs }) => jobs))];
}

/** How many of these payments are plain transfers, and how many have a call of their own. */
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

/** What a transaction is signed for: payments, or one operation. */
type Cargo = Pick<Transaction, 'jobs' | 'operationJob'>;

/**
 * Signs a transaction. One payment goes to its own contract directly, several go through Multicall3. An operation goes to its contract. The same
 * cargo at the same nonce and price always gives the same transaction.
 */
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

/**
 * The relayer's transactions in flight, by nonce. A flight stays until its nonce is used, or until no node has accepted a transaction under that
 * nonce. A flight that was dropped earlier would leave a gap, and all later nonces would wait behind it.
 */
export function createFlights(options: FlightsOptions) {
  const { nonces } = options;
  const flights = new Map<number, Flight>();
  // Prices that a node found too low for a nonce. Another transaction waits under that nonce: a third party's, or one of ours that this process does
  // not remember.
  const refused = new Map<number, Price>();

  function priceUnder(nonce: number, prices: Prices): Price {
    for (const past of refused.keys()) if (nonces.isPast(past)) refused.delete(past);
    const tooLittle = refused.get(nonce);
    return tooLittle ? (prices.above(tooLittle) ?? tooLittle) : prices.offer;
  }

  function close(flight: Flight): void {
    if (flights.get(flight.nonce) === flight) flights.delete(flight.nonce);
  }

  /** Gives the lowest free nonce and signs for it. */
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
    /** Notes that a node found the flight's price too low for its nonce. The next transaction under that nonce offers more. */
    outbid: (flight: Flight): void => void refused.set(flight.nonce, newest(flight).price),
    /** Removes the newest transaction, which was never sent. Frees the nonce when nothing else was sent under it. */
    dropUnsent(flight: Flight): void {
      flight.transactions.pop();
      if (flight.transactions.length === 0) close(flight);
    },
    /** Signs again for these payments, in place of the newest transaction, which was never sent. */
    replaceUnsent(flight: Flight, jobs: readonly Job[]): void {
      const { price } = newest(flight);
      flight.transactions.pop();
      flight.transactions.push(sign(options, flight.nonce, { jobs, operationJob: null }, price));
    },
    /** Signs a replacement with a higher fee, for these jobs or for the flight's operation. False when the fee would exceed the ceiling. */
    replace(flight: Flight, jobs: readonly Job[], prices: Prices): boolean {
      const { price: last, operationJob } = newest(flight);
      const price = prices.above(last);
      if (price) flight.transactions.push(sign(options, flight.nonce, { jobs, operationJob }, price));
      return price !== null;
    },
    /** Whether a lower nonce is free. Then the flight would wait for ever. */
    isBehindGap: (flight: Flight): boolean => nonces.next(new Set(flights.keys())) < flight.nonce,
  };
}

export type Flights = ReturnType<typeof createFlights>;
