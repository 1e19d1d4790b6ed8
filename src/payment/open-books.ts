import type { ChainClient } from '../chain/rpc/client.ts';
import type { Config } from '../config.ts';
import type { Clock } from '../lib/clock.ts';
import { hexToBytes } from '../lib/hex.ts';
import { formatUnits, USDC_DECIMALS } from '../lib/units.ts';
import type { BookStore } from '../store/ports/books.ts';
import type { LedgerStore } from '../store/ports/sales.ts';
import type { GatewayTransferStore } from '../store/ports/transfers.ts';
import { type BookRail, type Books, type BooksOptions, type CountedSurplus, createBooks } from './books.ts';
import { SETTLEMENT_BYTES } from './channels/scheme.ts';
import { createSurplusCount, forBooks } from './usdc/books.ts';

/** Rows of one transaction that are added up. A batch settles at most 250 payments. */
const MOST_ROWS = 1000;

interface BooksNeeds {
  readonly config: Pick<Config, 'network' | 'seller'>;
  readonly chain: ChainClient;
  readonly books: BookStore;
  readonly store: Pick<LedgerStore, 'get' | 'findByHash'>;
  readonly transfers: Pick<GatewayTransferStore, 'paymentsIn'>;
  /** Counts what came in beyond the ledger, for the metrics. */
  readonly onSurplus?: ((surplus: CountedSurplus) => void) | undefined;
  readonly clock: Clock;
  readonly log: BooksOptions['log'];
}

/**
 * Opens the books for the process that settles, with the rails that are on. What comes out of the channels' contract is
 * the channels' to compare.
 */
export function openBooks(needs: BooksNeeds, rails: readonly BookRail[]): Books {
  const { config, store, clock, log } = needs;
  const { usdc, caip2: network } = config.network;
  const chain = forBooks(needs.chain);
  const payTo = hexToBytes(config.seller);
  const known = (transaction: Uint8Array) => knownIn(needs, transaction, payTo);
  const surplus = createSurplusCount({ chain, usdc, payTo, without: SETTLEMENT_BYTES, known });
  return createBooks({
    store: needs.books,
    ledger: store,
    rails,
    network,
    reachedBlock: () => chain.agreed.head({ rank: 'collect' }),
    countSurplus: surplus.count,
    onSurplus: (counted) => {
      needs.onSurplus?.(counted);
      const { transfers, amount, transactions } = counted;
      const detail = { transfers, usdc: formatUnits(amount, USDC_DECIMALS), transactions };
      log.warn(detail, 'more came in than the ledger has');
    },
    clock,
    log,
  });
}

/** What the ledger says came in to the seller by this transaction, in base units. */
async function knownIn(
  { store, transfers }: Pick<BooksNeeds, 'store' | 'transfers'>,
  transaction: Uint8Array,
  payTo: Uint8Array,
): Promise<bigint> {
  const same = (one: Uint8Array | null, other: Uint8Array) => one !== null && Buffer.compare(one, other) === 0;
  const rows = (await store.findByHash(transaction, MOST_ROWS)).filter((row) => same(row.transaction, transaction));
  for (const id of await transfers.paymentsIn(transaction, MOST_ROWS)) {
    const row = await store.get(id);
    if (row) rows.push(row);
  }
  return rows
    .filter((row) => row.state === 'settled' && same(row.payTo, payTo))
    .reduce((sum, { amount }) => sum + amount, 0n);
}
