import { transferCalldata } from '../../evm/token.ts';
import type { Price, Prices } from './fees.ts';
import type { GasModel } from './gas-model.ts';
import type { Job } from './job.ts';
import { batchCalldata, MULTICALL3 } from './multicall.ts';
import type { Nonces } from './nonces.ts';
import type { Signed, Wallet } from './wallet.ts';

/** A signed transaction and its jobs. */
export interface Transaction extends Signed {
  readonly jobs: readonly Job[];
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

interface FlightsOptions {
  usdc: `0x${string}`;
  wallet: Pick<Wallet, 'sign'>;
  nonces: Nonces;
  gas: Pick<GasModel, 'limit'>;
}

/**
 * Signs a transaction for these jobs. One job goes to the token directly, several go through Multicall3. The same jobs at the same nonce and price
 * always give the same transaction.
 */
function sign({ usdc, wallet, gas }: FlightsOptions, nonce: number, jobs: readonly Job[], price: Price): Transaction {
  const authorizations = jobs.map(({ intent }) => intent.authorization);
  const [only] = authorizations;
  const call =
    only && authorizations.length === 1
      ? { to: usdc, data: transferCalldata(only) }
      : ({ to: MULTICALL3, data: batchCalldata(usdc, authorizations) } as const);
  const limit = gas.limit(jobs.length);
  const signed = wallet.sign({ ...call, gas: limit, nonce, ...price });
  return { ...signed, jobs, gas: limit, price };
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

  return {
    close,
    all: (): Flight[] => [...flights.values()],
    size: (): number => flights.size,
    has: (flight: Flight): boolean => flights.get(flight.nonce) === flight,
    /** Gives a group the lowest free nonce and signs for it. */
    open(jobs: readonly Job[], prices: Prices): Flight {
      const nonce = nonces.next(new Set(flights.keys()));
      const flight: Flight = {
        ...{ nonce, transactions: [sign(options, nonce, jobs, priceUnder(nonce, prices))], sentMs: null, resends: 0 },
      };
      flights.set(nonce, flight);
      return flight;
    },
    /** Notes that a node found the flight's price too low for its nonce. The next transaction under that nonce offers more. */
    outbid: (flight: Flight): void => void refused.set(flight.nonce, newest(flight).price),
    /** Removes the newest transaction, which was never sent. Frees the nonce when nothing else was sent under it. */
    dropUnsent(flight: Flight): void {
      flight.transactions.pop();
      if (flight.transactions.length === 0) close(flight);
    },
    /** Signs again for these jobs, in place of the newest transaction, which was never sent. */
    replaceUnsent(flight: Flight, jobs: readonly Job[]): void {
      const { price } = newest(flight);
      flight.transactions.pop();
      flight.transactions.push(sign(options, flight.nonce, jobs, price));
    },
    /** Signs a replacement with a higher fee for these jobs. False when the fee would exceed the ceiling. */
    replace(flight: Flight, jobs: readonly Job[], prices: Prices): boolean {
      const price = prices.above(newest(flight).price);
      if (price) flight.transactions.push(sign(options, flight.nonce, jobs, price));
      return price !== null;
    },
    /** Whether a lower nonce is free. Then the flight would wait for ever. */
    isBehindGap: (flight: Flight): boolean => nonces.next(new Set(flights.keys())) < flight.nonce,
  };
}

export type Flights = ReturnType<typeof createFlights>;
