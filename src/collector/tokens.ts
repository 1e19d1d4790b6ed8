import type { BlockLog, LogQuery } from '../chain/block.ts';
import { TRANSFER_TOPIC } from '../chain/contracts.ts';
import { ARC_SYSTEM_ADDRESS, decodeTransfers, NATIVE_PER_UNIT, type Transfer } from '../chain/erc20.ts';
import { hexToBytes } from '../lib/hex.ts';
import { alternatives, type LogScanner, toTopic, type WatchList } from './scanner.ts';
import type { TokenAccountRow, TokenEventRow } from './store/rows.ts';

// What transfers tell of the watched tokens: who holds them, and the project token's burns and payouts.

/** Raise one when the same logs give other rows, so that stored blocks are scanned again. */
const ACCOUNTS_VERSION = 1;
const EVENTS_VERSION = 1;
/** Mints come from it, and burns go to it. */
const ZERO_ADDRESS = '0x0000000000000000000000000000000000000000';

/** The accounts of the watched tokens' transfers. Not USDC's: nearly every transaction on Arc has one. */
export function createTokenAccountScanner({ tokens, usdc }: Pick<WatchList, 'tokens' | 'usdc'>): LogScanner {
  const watched = new Set(tokens.map(({ address }) => address).filter((address) => address !== usdc));
  const filters: LogQuery[] = watched.size === 0 ? [] : [{ addresses: [...watched], topics: [[TRANSFER_TOPIC]] }];
  const rowsOf = (log: BlockLog): TokenAccountRow[] =>
    decodeTransfers([{ ...log, topics: [...log.topics] }], usdc).flatMap(({ token, from, to, amount }) =>
      [from, to]
        .filter((account) => amount > 0n && account !== ZERO_ADDRESS)
        .map((account) => ({ block: log.block, at: log.at, token: hexToBytes(token), account: hexToBytes(account) })),
    );
  return {
    key: ['token-accounts', ACCOUNTS_VERSION, ...[...watched].sort()].join(' '),
    filters: () => filters,
    scan: ({ logs }) => ({ tokenAccounts: logs.filter(({ address }) => watched.has(address)).flatMap(rowsOf) }),
  };
}

/** The project token's burns (a mint to a burn address is none) and the distributor's payouts, in USDC's base units. */
export function createTokenEventScanner(watch: WatchList): LogScanner {
  const { projectToken, distributor, burnAddresses, usdc } = watch;
  const filters: LogQuery[] = [];
  if (projectToken) {
    const graves = alternatives(burnAddresses.map(toTopic));
    filters.push({ addresses: [projectToken], topics: [TRANSFER_TOPIC, null, graves] });
  }
  if (distributor) {
    filters.push({ addresses: [usdc, ARC_SYSTEM_ADDRESS], topics: [TRANSFER_TOPIC, toTopic(distributor)] });
  }
  return {
    key: ['token-events', EVENTS_VERSION, projectToken, ...burnAddresses.toSorted(), distributor, usdc].join(' '),
    filters: () => filters,
    scan({ logs }) {
      const own = logs.filter(({ address }) => [projectToken, usdc, ARC_SYSTEM_ADDRESS].includes(address));
      const byTransaction = Map.groupBy(own, ({ transactionHash }) => transactionHash);
      const tokenEvents = [...byTransaction.values()].flatMap((entries) => readTransaction(entries, watch));
      return { tokenEvents };
    },
  };
}

function readTransaction(logs: readonly BlockLog[], watch: WatchList): TokenEventRow[] {
  const { projectToken, distributor, burnAddresses, usdc } = watch;
  const [first] = logs;
  if (!first) return [];
  const place = { block: first.block, at: first.at, transactionHash: hexToBytes(first.transactionHash) };
  const row = (kind: TokenEventRow['kind'], transfer: Transfer, account: string, amount: bigint): TokenEventRow => ({
    ...place,
    logIndex: transfer.logIndex,
    kind,
    account: hexToBytes(account),
    amount,
  });
  const entries = logs.map((log) => ({ ...log, topics: [...log.topics] }));
  return decodeTransfers(entries, usdc).flatMap((transfer) => {
    const { token, from, to, amount } = transfer;
    if (
      token === projectToken &&
      burnAddresses.includes(to) &&
      from !== ZERO_ADDRESS &&
      !burnAddresses.includes(from)
    ) {
      return amount > 0n ? [row('burn', transfer, from, amount)] : [];
    }
    const units = token === usdc ? amount : token === ARC_SYSTEM_ADDRESS ? amount / NATIVE_PER_UNIT : 0n;
    return from === distributor && to !== distributor && units > 0n ? [row('payout', transfer, to, units)] : [];
  });
}
