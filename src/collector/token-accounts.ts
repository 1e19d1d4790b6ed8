import { TRANSFER_TOPIC } from '../chain/abi.ts';
import { decodeTransfers } from '../chain/erc20.ts';
import { hexToBytes } from '../lib/hex.ts';
import type { TokenAccountRow } from '../store/chain/rows.ts';
import type { LogFilter, LogScanner, ScanLog } from './log-scanner.ts';
import type { WatchList } from './watch-list.ts';

/** Mints come from it, and burns go to it. It holds nothing. */
const ZERO_ADDRESS = '0x0000000000000000000000000000000000000000';

/** Raise it when a change makes the same logs give other rows, so that stored blocks are scanned again. */
const VERSION = 1;

/**
 * Reads the accounts that transfers move the watched tokens to or from; a transfer of nothing moves nothing.
 * USDC is no watched token, and its transfers are not read: nearly every transaction on Arc has one.
 */
export function createTokenAccountScanner({ tokens, usdc }: Pick<WatchList, 'tokens' | 'usdc'>): LogScanner {
  const watched = new Set(tokens.map(({ address }) => address).filter((address) => address !== usdc));
  const filters: LogFilter[] = watched.size === 0 ? [] : [{ addresses: [...watched], topics: [[TRANSFER_TOPIC]] }];
  const rowsOf = (log: ScanLog): TokenAccountRow[] =>
    decodeTransfers([{ ...log, topics: [...log.topics] }], usdc).flatMap(({ token, from, to, amount }) =>
      [from, to]
        .filter((account) => amount > 0n && account !== ZERO_ADDRESS)
        .map((account) => ({ block: log.block, at: log.at, token: hexToBytes(token), account: hexToBytes(account) })),
    );
  return {
    key: ['token-accounts', VERSION, ...[...watched].sort()].join(' '),
    filters: () => filters,
    scan: ({ logs }) => ({ tokenAccounts: logs.filter(({ address }) => watched.has(address)).flatMap(rowsOf) }),
  };
}
