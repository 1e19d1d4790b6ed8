import { bytesToHex } from '../../../src/lib/hex.ts';
import { formatUnits } from '../../../src/lib/units.ts';
import type { BookEntry } from '../../../src/store/ports/books.ts';
import type { LedgerStatus, ListedPayment, StateSum } from '../../../src/store/ports/reports.ts';
import type { ProviderNote } from '../../../src/store/ports/stores.ts';
import { textTable } from '../text-table.ts';

/** USDC's ERC-20 interface has 6 decimals. */
const USDC_DECIMALS = 6;

const seconds = (ms: number): number => Math.floor(ms / 1000);
const iso = (ms: number | null): string => (ms === null ? '-' : new Date(ms).toISOString());
const hex = (bytes: Uint8Array | null): string | null => bytes && bytesToHex(bytes);

/** The ledger's state as text. `now` is in Unix milliseconds; the age of the oldest open payment is computed from it. */
export function statusText(status: LedgerStatus, now: number): string[] {
  const { sums, oldestOpen, replies, lightning } = status;
  return [
    ...textTable([['rail', 'state', 'payments', 'sum'], ...sums.map(sumCells)]),
    oldestOpen
      ? `oldest open payment: ${oldestOpen.id}, ${oldestOpen.state}, reserved ${seconds(now - oldestOpen.reservedAt)} s ago (${iso(oldestOpen.reservedAt)})`
      : 'no open payment',
    `kept replies: ${replies.count}, ${replies.bytes} bytes`,
    lightning
      ? `lightning: ${lightning.invoices} invoices kept, ${lightning.facilitatorClaims} claims by the facilitator's clients`
      : 'lightning: not in this ledger',
  ];
}

function sumCells({ rail, state, count, amount }: StateSum): string[] {
  return [
    rail,
    state,
    String(count),
    rail === 'usdc' ? `${formatUnits(amount, USDC_DECIMALS)} USDC` : `${amount} msat`,
  ];
}

/** The same as JSON, with the names and units of the service's answers. */
export function statusJson({ sums, oldestOpen, replies, lightning }: LedgerStatus, now: number): object {
  return {
    sums: sums.map(({ rail, state, count, amount }) => ({ rail, state, count, amount: amount.toString() })),
    oldestOpen: oldestOpen && {
      id: oldestOpen.id,
      state: oldestOpen.state,
      reservedAt: seconds(oldestOpen.reservedAt),
      ageSeconds: seconds(now - oldestOpen.reservedAt),
    },
    replies,
    lightning,
  };
}

/** Payments as text, one per line. */
export function listText(payments: readonly ListedPayment[]): string[] {
  const cells = payments.map(({ id, state, amount, nonce, transaction, reservedAt, endedAt, route, protocol }) => {
    const usdc = formatUnits(amount, USDC_DECIMALS);
    return [
      id,
      state,
      usdc,
      iso(reservedAt),
      iso(endedAt),
      bytesToHex(nonce),
      hex(transaction) ?? '-',
      route ?? '-',
      protocol ?? '-',
    ];
  });
  return textTable([
    ['id', 'state', 'usdc', 'reserved', 'ended', 'nonce', 'transaction', 'route', 'protocol'],
    ...cells,
  ]);
}

/** Payments as JSON. */
export function listJson(payments: readonly ListedPayment[]): object {
  return {
    payments: payments.map(
      ({ id, state, amount, nonce, transaction, block, reservedAt, endedAt, route, protocol }) => ({
        id,
        state,
        amountUsdc: formatUnits(amount, USDC_DECIMALS),
        nonce: bytesToHex(nonce),
        transaction: hex(transaction),
        block,
        reservedAt: seconds(reservedAt),
        endedAt: endedAt === null ? null : seconds(endedAt),
        route,
        protocol,
      }),
    ),
  };
}

/** The notes on RPC providers, one a line. What was said is last, because it may be long. */
export function providersText(notes: readonly ProviderNote[]): string[] {
  if (notes.length === 0) return ['no RPC provider is set apart or in dispute'];
  const cells = notes.map(({ host, kind, sinceMs, untilMs, said, others, question }) => [
    host,
    kind,
    iso(sinceMs),
    iso(untilMs),
    said,
    others,
    question,
  ]);
  return textTable([['host', 'kind', 'since', 'until', 'it said', 'others said', 'question'], ...cells]);
}

/** The differences that were accepted, one a line, and their sum. Amounts in base units of USDC. */
export function mismatchText(accepted: readonly BookEntry[]): string[] {
  if (accepted.length === 0) return ['the books have no difference that waits to be accepted'];
  const cells = accepted.map(({ rail, item, amount, notedMs, detail }) => [
    rail,
    item,
    formatUnits(amount, USDC_DECIMALS),
    iso(notedMs),
    detail,
  ]);
  const sum = accepted.reduce((total, { amount }) => total + amount, 0n);
  return [
    ...textTable([['rail', 'payment', 'usdc', 'found', 'why'], ...cells]),
    `accepted ${formatUnits(sum, USDC_DECIMALS)} USDC`,
  ];
}
