import type { Desk } from '../actors/desk.ts';
import { boundHashOf } from '../record/bound-hash.ts';
import { type Presentation, voucherKey } from '../record/presentation.ts';
import type { World } from '../world/world.ts';
import { readLedgers, type SaleRow } from './ledger.ts';
import { nameOf } from './paid.ts';
import type { Tell } from './promise.ts';

/** How long an answer can be fetched, with some seconds for the fetching. */
const KEPT_MS = 900_000 - 60_000;
/** An invoice's own life and the scheme's skew. */
const PROOF_MS = (300 + 60) * 1000;
/** Longer than the lease of a process that began to serve and died. */
const FETCH_TIMEOUT_MS = 120_000;

interface Owed {
  readonly name: string;
  /** The presentations of which one must be answered: byte for byte as they were, for the buyer that made them. */
  readonly ways: readonly Presentation[];
}

const isDelivered = ({ received, reported }: Presentation): boolean =>
  received !== null && 'status' in received && reported?.status === 200;

/** At rest: everybody who has paid, and was not answered, presents again and is answered. */
export function createServedCheck(world: World, desk: Desk, claimed: ReadonlySet<string>, tell: Tell) {
  const { book, scheduler, scenario, lightning, instances } = world;
  const most = Number(scenario.env.REDELIVERY_MAX || 5);

  function owedSales(): Owed[] {
    return readLedgers(world).flatMap(({ sales, isTwin }) =>
      sales.flatMap((row) => {
        const key = row.channelId ? voucherKey(row.channelId, row.max ?? 0n) : `${row.rail} ${row.payer} ${row.nonce}`;
        const shown = book.of(key).filter(({ at }) => (at === 'twin') === isTwin);
        const isOld = (row.endedAt ?? 0) + KEPT_MS < scheduler.nowMs();
        if (row.state !== 'settled' || isOld || row.deliveries >= most || shown.some(isDelivered)) return [];
        const ways = shown.filter((one) => isOf(one, row));
        return [{ name: `${row.rail} ${row.nonce.slice(0, 10)}`, ways }];
      }),
    );
  }

  /** Sats cannot come back: a payer that paid an invoice of ours and presented the proof in time is owed the answer. */
  function owedProofs(): Owed[] {
    const claims = new Map(
      readLedgers(world).flatMap((ledger) => ledger.claims.map((claim) => [claim.paymentHash, claim] as const)),
    );
    return lightning.invoices().flatMap((invoice) => {
      const { paymentHash, createdAt } = invoice;
      const claim = claims.get(paymentHash);
      const ways = book
        .of(`lightning ${paymentHash}`)
        .filter(
          (one) =>
            holds(one, [invoice.preimage, invoice.text, invoice.descriptionHash]) &&
            isFor(one, invoice.descriptionHash),
        );
      const isLate = claim?.grants !== true && scheduler.nowMs() > createdAt * 1000 + PROOF_MS;
      const isElsewhere = claimed.has(paymentHash) || claim?.grants === false;
      if (!invoice.ours || !invoice.paid || isElsewhere || ways.length === 0 || ways.some(isDelivered) || isLate)
        return [];
      return [{ name: `lightning ${paymentHash.slice(0, 8)}`, ways }];
    });
  }

  async function fetch(way: Presentation): Promise<string> {
    for (const untilMs = scheduler.nowMs() + FETCH_TIMEOUT_MS; ; ) {
      const at = instances.find(({ name }) => name === way.at)?.isUp() ? way.at : (instances[0]?.name ?? way.at);
      const { reported, received } = await desk.repeat(way, { from: way.request.from, at });
      const status = received && 'status' in received ? (reported?.status ?? 0) : 0;
      if (status === 200) return '';
      const waits = [0, 409, 429, 503].includes(status);
      if (!waits || scheduler.nowMs() > untilMs) return `${status} ${reported?.code ?? ''}`;
      await new Promise<void>(
        (next) => void setTimeout(next, 1000 * Math.min(60, Math.max(1, reported?.retryAfterSeconds ?? 1))),
      );
    }
  }

  /** The first way that leads to an answer is enough: of what was presented only one thing was bought. */
  async function collect({ name, ways }: Owed): Promise<void> {
    const tried: string[] = [];
    for (const way of unlike(ways)) {
      const why = await fetch(way);
      if (why === '') return;
      tried.push(`${nameOf(way)}: ${why}`);
    }
    tell(
      'who paid is served',
      `${name} is paid and cannot be fetched: ${tried.join('; ') || 'by nobody who presented it'}`,
    );
  }

  return async (): Promise<void> => {
    for (const owed of [...owedSales(), ...owedProofs()]) await collect(owed);
  };
}

/** Whether it is this content of the authorization that the ledger has settled. */
function isOf({ authorization, voucher }: Presentation, row: SaleRow): boolean {
  if (voucher?.kind === 'refund') return false;
  if (row.rail === 'channels' && row.validBefore === 0n) return voucher?.kind === 'voucher';
  const { value, validAfter, validBefore, to } = authorization?.terms ?? {};
  return to === row.payTo && value === row.amount && validAfter === row.validAfter && validBefore === row.validBefore;
}

function holds({ request }: Presentation, parts: readonly string[]): boolean {
  const header = request.headers['payment-signature'];
  const text = header === undefined ? (request.body ?? '') : Buffer.from(header, 'base64').toString('utf8');
  return parts.every((part) => text.includes(part));
}

/** Whether it is the request that the invoice was made for. */
const isFor = ({ request }: Presentation, descriptionHash: string): boolean => boundHashOf(request) === descriptionHash;

/** One for each request, client and signature: another signature makes another authorization. */
function unlike(ways: readonly Presentation[]): Presentation[] {
  const known = new Map<string, Presentation>();
  for (const way of ways) {
    const signature = (way.authorization ?? way.voucher)?.signature.toString('hex');
    known.set(`${way.asked} ${way.request.from} ${way.identifier} ${signature}`, way);
  }
  return [...known.values()];
}
