import { bytesToHex } from '../../../src/lib/hex.ts';
import { formatUnits } from '../../../src/lib/units.ts';
import type { Income } from '../../../src/store/ports/reports.ts';

const HEADER = ['rail', 'id', 'amount', 'unit', 'at', 'transaction', 'block', 'route', 'protocol'];

/**
 * Income as CSV (RFC 4180), line by line. Amounts are exact, in the unit beside them. Times are ISO 8601 in UTC.
 * Every field is hex, a number, a time, a path or a fixed word. So none needs quotes, and none can be a formula.
 */
export async function* incomeCsv(income: Iterable<Income> | AsyncIterable<Income>): AsyncGenerator<string> {
  yield line(HEADER);
  for await (const { rail, id, amount, at, hash, block, route, protocol } of income) {
    const time = new Date(at).toISOString();
    if (rail === 'usdc')
      yield line([rail, id, formatUnits(amount, 6), 'USDC', time, bytesToHex(hash), block, route, protocol]);
    else {
      const paymentHash = Buffer.from(hash).toString('hex');
      yield line([rail, paymentHash, amount.toString(), 'msat', time, paymentHash, block, route, protocol]);
    }
  }
}

function line(cells: readonly (string | number | null)[]): string {
  return `${cells.map((cell) => cell ?? '').join(',')}\r\n`;
}
