import type { ModelRow, ModelWrite } from '../../../scripts/lib/model/walks.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createLedger, type Ledger } from '../../../src/payment/ledger.ts';
import { REVERTED } from '../../../src/payment/settler.ts';
import type { LedgerStore, Payment } from '../../../src/store/ports/payments.ts';
import { hash32, sale, storedIntent } from './ledger-rows.ts';

const STATES = [null, 'reserved', 'settling', 'unknown', 'settled', 'failed'] as const;
/** Amounts and prices of the two contents, in base units. */
const VALUES = [1000n, 2000n];
const CANCELLED = 'cancelled';
const REQUEST_HASHES = [0, 1].map((request) => hash32(`request ${request}`));
const answerTo = (request: number): string => `answer ${request}`;

/** What the model and the ledger say about the row and about the last write. */
export interface Compared {
  readonly model: unknown;
  readonly ledger: unknown;
}

/** Makes the writes of one walk in a real ledger. `number` names the walk's own authorization, so walks may share a database. */
export function createReplay(store: LedgerStore, number: number) {
  const nonce = `walk ${number}`;
  const key = sale(nonce);
  const contentHashes = [0, 1].map((content) => hash32(`${nonce} content ${content}`));
  const ids = new Map<number, string>();
  const ledgers = new Map<string, Ledger>();

  /** The ledger as one boot of an instance has it. */
  function ledgerOf(instance: number, boot: number): Ledger {
    const bootId = `walk ${number}, instance ${instance}, boot ${boot}`;
    const known = ledgers.get(bootId);
    if (known) return known;
    const limits = { storeBytes: 10 ** 9, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
    const ledger = createLedger({ ...limits, store, clock: systemClock, bootId });
    ledgers.set(bootId, ledger);
    return ledger;
  }

  const idOf = (id: number): string => ids.get(id) ?? 'no such row';
  const transactionOf = (content: number): Uint8Array => hash32(`${nonce} transaction ${content}`);

  /** Makes the write. Returns whether it was made; null where the model does not say. */
  async function make({ what, instance, boot, given, after }: ModelWrite): Promise<boolean | null> {
    const ledger = ledgerOf(instance, boot);
    const [first = 0, ...rest] = given;
    switch (what) {
      case 'reserve': {
        const [request = 0, content = 0, again] = rest;
        const value = VALUES[content] ?? 0n;
        const more = {
          amount: value,
          price: value,
          requestHash: hash32(`request ${request}`),
          authorizationHash: hash32(`${nonce} content ${content}`),
          clientHash: hash32('the buyer'),
        };
        const id = await ledger.reserve(sale(nonce, more), again === 1);
        if (id) ids.set(after.id, id);
        return id !== null;
      }
      case 'abandon':
        return ledger.abandon(idOf(first));
      case 'store':
        return ledger.storeIntent(idOf(first), storedIntent(answerTo(rest[1] ?? 0)));
      case 'unknown':
        await ledger.unknown(idOf(first));
        return null;
      case 'note': {
        const id = idOf(first);
        return (await ledger.noteBroadcast([{ id, transaction: transactionOf(after.content) }])).has(id);
      }
      case 'settled':
        return ledger.settled(idOf(first), transactionOf(after.content), 9, VALUES[after.content] ?? 0n);
      case 'failed':
        return ledger.failed(idOf(first), after.final ? CANCELLED : REVERTED);
      case 'ruleOut':
        return ledger.ruleOut(idOf(first), CANCELLED);
      case 'recover': {
        const living = [0, 1]
          .filter((one) => given[2 * one + 1] === 0)
          .map((one) => ledgerOf(one, given[2 * one] ?? 0));
        const isOfWalk = (row: Payment) => Buffer.compare(row.nonce, key.nonce) === 0;
        await ledger.recover(() => living.map(({ bootId }) => bootId), isOfWalk);
        return null;
      }
      default:
        throw new Error(`the model makes an unknown write: ${what}`);
    }
  }

  return {
    /** Makes a write and reads the row. `model` and `ledger` must be equal. */
    async step(write: ModelWrite): Promise<Compared> {
      const made = await make(write);
      const row = await store.find(key);
      return {
        model: [wasMade(write), shownByModel(write.after, idOf)],
        ledger: [made, row && shownByLedger(row, contentHashes)],
      };
    },
    /** The answer that the ledger keeps after the walk, and the one that the model owes. Closes a row that is still open: each recovery would read it. */
    async end({ state, id, request }: ModelRow): Promise<Compared> {
      const kept = ids.has(id) ? await ledgerOf(9, 9).redeliver(idOf(id)) : null;
      if (ids.has(id)) await store.move(idOf(id), ['reserved', 'settling', 'unknown'], 'failed', { reason: CANCELLED });
      return { model: STATES[state] === 'settled' ? answerTo(request) : null, ledger: kept && String(kept) };
    },
  };
}

/** Whether the model's write was made; null where its line does not say. */
function wasMade({ what, given }: ModelWrite): boolean | null {
  if (what === 'unknown' || what === 'recover') return null;
  return what === 'reserve' ? given[0] !== 0 : given[1] === 1;
}

/** The members of a row that both know. `noted` and `tried` count while the payment is open, `final` once it has failed. */
function shownByModel({ state, id, request, content, noted, tried, final }: ModelRow, idOf: (id: number) => string) {
  const name = STATES[state];
  if (!name) return null;
  const isOpen = name !== 'settled' && name !== 'failed';
  return {
    id: idOf(id),
    state: name,
    request,
    content,
    ...(isOpen && { noted, tried }),
    ...(name === 'failed' && { final }),
  };
}

function shownByLedger(row: Payment, contentHashes: readonly Uint8Array[]) {
  const { id, state, reason, transaction } = row;
  const isOpen = state !== 'settled' && state !== 'failed';
  const numberIn = (hashes: readonly Uint8Array[], stored: Uint8Array | null) =>
    hashes.findIndex((hash) => stored !== null && Buffer.compare(stored, hash) === 0);
  return {
    id,
    state,
    request: numberIn(REQUEST_HASHES, row.requestHash),
    content: numberIn(contentHashes, row.authorizationHash),
    ...(isOpen && { noted: transaction !== null, tried: reason === REVERTED }),
    ...(state === 'failed' && { final: reason !== REVERTED }),
  };
}
