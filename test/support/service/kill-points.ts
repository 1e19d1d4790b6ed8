import { MULTICALL3 } from '../../../src/payment/usdc/token.ts';
import type { Exchange, Stop } from '../chain/kill-proxy.ts';
import type { LedgerRow } from '../ledger/kill-ledger.ts';

/** A payment at the moment of a kill: the state at its buyer, in the ledger and on the chain. */
export interface Remains {
  readonly isWallet: boolean;
  readonly received: string | null;
  readonly row: LedgerRow | null;
  /** The chain's state of the transaction that the row names. */
  readonly onChain: 'nothing' | 'pending' | 'mined';
}

/** A named moment of a paid call, recognised by the requests between the service and its node. */
export interface KillPoint {
  readonly name: string;
  readonly stop: Stop;
  /** A query over the ledger whose count rises at that moment. The service is stopped within milliseconds. */
  readonly rises?: string;
  /** Only a process that has settled nothing yet reaches this point. */
  readonly fresh?: true;
  /** No block is mined meanwhile. */
  readonly unmined?: true;
  /** No buyer receives an answer. */
  readonly withoutAnswers?: true;
  /** Points of one number can share a kill: different buyers reach them, first the moment that is the last in a call. */
  readonly kill: number;
  /** How many buyers go for it, where the points of a kill do not share them evenly. */
  readonly buyers?: 1;
  /** Whether the remains show the moment, so that the kill did not come too late. */
  shows(left: readonly Remains[]): boolean;
}

const SELECTOR_IS_VALID_SIGNATURE = '0x1626ba7e';

const unsent = ({ row }: Remains) => row?.state === 'settling' && row.transaction === null;
/** Whether a transaction was signed for a payment whose outcome the ledger does not know. */
export const inFlight = ({ row }: Remains) => row?.state === 'settling' && row.transaction !== null;
/** Whether two or more of these share one transaction. */
export const shared = (remains: readonly Remains[]) =>
  [...Map.groupBy(remains, ({ row }) => row?.transaction ?? null)].some(([hash, all]) => hash && all.length > 1);

/** The twelve points, in the order of a call. `relayer` is in lower case. */
export function killPoints(relayer: string): readonly KillPoint[] {
  const asks = (method: string, fits: (params: readonly unknown[]) => boolean) => (exchange: Exchange) =>
    exchange.calls.some((call) => call.method === method && fits(call.params));
  const calls = (fits: (call: { from?: string; to?: string; data: string }) => boolean) =>
    asks('eth_call', ([call]) => fits(call as Parameters<typeof fits>[0]));
  const counts = (fits: (account: string) => boolean) =>
    asks('eth_getTransactionCount', ([account]) => fits(String(account).toLowerCase()));
  const sendsShared = asks('eth_sendRawTransaction', ([raw]) => String(raw).includes(MULTICALL3.slice(2)));
  const receipts = (fits: (receipt: { to: string } | null) => boolean) => (exchange: Exchange) =>
    exchange.calls.some(
      ({ method }, at) => method === 'eth_getTransactionReceipt' && fits(exchange.results[at] as { to: string } | null),
    );
  const ofShared = receipts((receipt) => receipt?.to.toLowerCase() === MULTICALL3);
  // The bought route's handler reads an account's nonce, and so does the relayer: its own.
  const handlerReads = counts((account) => account !== relayer);
  // The collector reads the head too, but together with other blocks.
  const readsHead = asks('eth_getBlockByNumber', ([block]) => block === 'latest');

  return [
    {
      name: 'a smart wallet is asked whether it signed',
      kill: 1,
      buyers: 1,
      stop: { stage: 'asked', matches: calls(({ data }) => data.startsWith(SELECTOR_IS_VALID_SIGNATURE)) },
      shows: (left) => left.some(({ isWallet, row }) => isWallet && row === null),
    },
    {
      name: 'the payer’s balance is asked for',
      kill: 1,
      buyers: 1,
      stop: { stage: 'asked', matches: calls(({ to }) => to === undefined) },
      shows: (left) => left.some(({ row, received }) => row === null && received === null),
    },
    {
      name: 'a handler runs',
      kill: 1,
      buyers: 1,
      stop: { stage: 'asked', matches: handlerReads },
      shows: (left) => left.some(({ row }) => row?.state === 'reserved'),
    },
    {
      name: 'reply and intent are just stored',
      kill: 3,
      stop: { stage: 'answered', matches: handlerReads },
      rises: 'SELECT count(*) FROM usdc_payments WHERE settling_at IS NOT NULL',
      fresh: true,
      shows: (left) => left.some(unsent),
    },
    {
      name: 'the relayer asks for its nonce',
      kill: 1,
      stop: { stage: 'asked', matches: counts((account) => account === relayer) },
      fresh: true,
      shows: (left) => left.some(unsent),
    },
    {
      name: 'the relayer asks for the fee',
      kill: 2,
      stop: { stage: 'asked', matches: (exchange) => exchange.calls.length === 1 && readsHead(exchange) },
      fresh: true,
      shows: (left) => left.some(unsent),
    },
    {
      name: 'a shared transaction is simulated',
      kill: 4,
      stop: { stage: 'asked', matches: calls(({ from, to }) => from === relayer && to === MULTICALL3) },
      shows: (left) => left.filter(unsent).length > 1,
    },
    {
      name: 'a shared transaction is signed, not sent',
      kill: 6,
      stop: { stage: 'asked', matches: sendsShared },
      shows: (left) => shared(left.filter((one) => inFlight(one) && one.onChain === 'nothing')),
    },
    {
      name: 'a shared transaction is sent, unanswered',
      kill: 5,
      stop: { stage: 'forwarded', matches: sendsShared },
      unmined: true,
      shows: (left) => shared(left.filter((one) => inFlight(one) && one.onChain === 'pending')),
    },
    {
      name: 'a receipt is asked for before the block',
      kill: 5,
      stop: { stage: 'forwarded', matches: receipts((receipt) => receipt === null) },
      unmined: true,
      shows: (left) => left.some((one) => inFlight(one) && one.onChain === 'pending'),
    },
    {
      name: 'a shared transaction is mined, its receipt unread',
      kill: 4,
      stop: { stage: 'forwarded', matches: ofShared },
      shows: (left) => shared(left.filter((one) => inFlight(one) && one.onChain === 'mined')),
    },
    {
      name: 'just settled, the answer not delivered',
      kill: 7,
      stop: { stage: 'answered', matches: ofShared },
      rises: "SELECT count(*) FROM usdc_payments WHERE state = 'settled'",
      withoutAnswers: true,
      shows: (left) => left.some(({ row, received }) => row?.state === 'settled' && received === null),
    },
  ];
}
