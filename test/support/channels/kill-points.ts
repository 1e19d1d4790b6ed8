import { encodeEventTopics, getAbiItem, type Hex, toFunctionSelector } from 'viem';
import type { Exchange, Stop } from '../chain/kill-proxy.ts';
import { abi } from './chain-view.ts';
import type { Way } from './kill-leaver.ts';
import type { OpenOperation, SaleLeft } from './kill-ledger.ts';

/** What the chain knows of a noted transaction. */
export type Stage = 'nothing' | 'pending' | 'mined';

/** What a kill has left: the calls without an answer, and the open claims and refunds, with what the chain knows of their transactions. */
export interface Remains {
  readonly calls: readonly { readonly isDeposit: boolean; readonly row: SaleLeft | null; readonly stage: Stage }[];
  readonly operations: readonly (OpenOperation & { readonly stage: Stage })[];
}

/** A named moment in the life of a channel, recognised by the requests between the service and its node. */
export interface ChannelPoint {
  readonly name: string;
  /**
   * Points of one number can share a kill: first the one of the claim or the refund, then the one of a buyer's call. The relayer sends one transaction
   * after the other and reads receipts together, so two points that hold back the same of these cannot.
   */
  readonly kill: number;
  readonly stop: Stop;
  /** A query over the ledger whose count rises at that moment. The service is stopped within milliseconds. */
  readonly rises?: string;
  /** No block is mined meanwhile. */
  readonly unmined?: true;
  /** The buyers' first calls put money in. */
  readonly deposits?: true;
  /** The buyers' first calls are never answered. */
  readonly discards?: true;
  /** Charges must add up without a block. */
  readonly steady?: true;
  /** How a buyer takes its money back meanwhile. */
  readonly leaves?: Way;
  /** Whether the remains show the moment, so that the kill did not come too late. */
  shows(left: Remains): boolean;
}

const SETTLED = "SELECT count(*) FROM usdc_payments WHERE state = 'settled' AND channel_id IS NOT NULL";
const TRIED = { asked: 'nothing', sent: 'pending', mined: 'mined' } as const;

const selector = (name: string): string => toFunctionSelector(getAbiItem({ abi, name }) as never).slice(2);
const [DEPOSIT, CLAIM, REFUND] = [
  selector('deposit'),
  selector('claimWithSignature'),
  selector('refundWithSignature'),
] as const;
const topic = (eventName: string): Hex => encodeEventTopics({ abi, eventName })[0] as Hex;

/** Whether a request sends a transaction whose calldata fits. */
const sends = (fits: (raw: string) => boolean) => (exchange: Exchange) =>
  exchange.calls.some(({ method, params: [raw] }) => method === 'eth_sendRawTransaction' && fits(String(raw)));
/** Whether an answer has the receipt of a transaction with this event. */
const receiptWith = (event: Hex) => (exchange: Exchange) =>
  exchange.calls.some(({ method }, at) => {
    const receipt = exchange.results[at] as { logs: { topics: string[] }[] } | null;
    return method === 'eth_getTransactionReceipt' && receipt?.logs.some(({ topics }) => topics[0] === event);
  });

/** The three moments of a transaction: signed and noted, sent and not mined, mined and not read. */
function transactionPoints(
  what: string,
  fits: (raw: string) => boolean,
  event: string,
  kills: readonly [number, number, number],
  rest: Pick<ChannelPoint, 'deposits' | 'leaves' | 'steady'>,
  stagesOf: (left: Remains) => readonly Stage[],
): ChannelPoint[] {
  const shows = (stage: Stage) => (left: Remains) => stagesOf(left).includes(stage);
  const sending = sends(fits);
  return [
    {
      name: `${what} is signed, not sent`,
      kill: kills[0],
      ...rest,
      shows: shows(TRIED.asked),
      stop: { stage: 'asked', matches: sending },
    },
    {
      name: `${what} is sent, not mined`,
      kill: kills[1],
      ...rest,
      shows: shows(TRIED.sent),
      unmined: true,
      stop: { stage: 'forwarded', matches: sending },
    },
    {
      name: `${what} is mined, its receipt unread`,
      kill: kills[2],
      ...rest,
      shows: shows(TRIED.mined),
      stop: { stage: 'forwarded', matches: receiptWith(topic(event)) },
    },
  ];
}

/** The points of a channel's life. `relayer` in lower case. */
export function channelPoints(relayer: string): readonly ChannelPoint[] {
  // The bought route's handler reads an account's nonce, and so does the relayer: its own.
  const handlerReads = (exchange: Exchange): boolean =>
    exchange.calls.some(
      ({ method, params: [account] }) =>
        method === 'eth_getTransactionCount' && String(account).toLowerCase() !== relayer,
    );
  const deposits = ({ calls }: Remains): Stage[] =>
    calls.filter(({ isDeposit, row }) => isDeposit && row?.state === 'settling').map(({ stage }) => stage);
  const operations =
    (kind: OpenOperation['kind']) =>
    (left: Remains): Stage[] =>
      left.operations.filter((one) => one.kind === kind && one.transaction !== null).map(({ stage }) => stage);
  const isClaim = (raw: string): boolean => raw.includes(CLAIM) && !raw.includes(REFUND);
  const ofWithdrawal = transactionPoints(
    'the claim at a withdrawal',
    isClaim,
    'Claimed',
    [7, 0, 8],
    { leaves: 'withdrawal' },
    operations('claim'),
  );

  return [
    {
      name: 'the endpoint of a call runs',
      kill: 5,
      stop: { stage: 'asked', matches: handlerReads },
      shows: ({ calls }) => calls.some(({ isDeposit, row }) => !isDeposit && row === null),
    },
    {
      name: 'a voucher is charged, its answer not delivered',
      kill: 6,
      discards: true,
      rises: SETTLED,
      stop: { stage: 'answered', matches: handlerReads },
      shows: ({ calls }) => calls.some(({ isDeposit, row }) => !isDeposit && row?.state === 'settled'),
    },
    ...transactionPoints(
      'a deposit',
      (raw) => raw.includes(DEPOSIT),
      'Deposited',
      [1, 2, 3],
      { deposits: true },
      deposits,
    ),
    {
      name: 'a deposit is settled, its answer not delivered',
      kill: 4,
      deposits: true,
      discards: true,
      rises: SETTLED,
      stop: { stage: 'answered', matches: receiptWith(topic('Deposited')) },
      shows: ({ calls }) => calls.some(({ isDeposit, row }) => isDeposit && row?.state === 'settled'),
    },
    ...transactionPoints('a claim', isClaim, 'Claimed', [9, 10, 11], { steady: true }, operations('claim')),
    // A withdrawal is a transaction of the payer, so blocks must be mined.
    ...ofWithdrawal.filter(({ unmined }) => !unmined),
    ...transactionPoints(
      'a refund',
      (raw) => raw.includes(REFUND),
      'Refunded',
      [5, 6, 1],
      { leaves: 'refund' },
      operations('refund'),
    ),
  ];
}
