import type { RailsConfig } from '../config/rails.ts';
import { allTried } from '../lib/all-tried.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { BookRail, Books } from './books.ts';
import type { RailKit } from './open-rails.ts';
import type { OpenRail } from './rail.ts';
import { createRailWatch } from './rail-watch.ts';
import { createRecovery } from './recovery.ts';
import { createRelaying } from './relayer/relayer.ts';
import { createSettledToday } from './settled-today.ts';
import { createSettlement } from './settlement.ts';
import type { RailSettling, Relaying, SettlingRail, SettlingTerms } from './settler.ts';
import type { MaintainedSettling, RailProbes, SettlesForOthers, SettlingPlace } from './settling.ts';
import { createLocalSettling, type LocalSettling } from './settling-local.ts';
import { createRemoteSettling } from './settling-remote.ts';
import { createSwitchedSettling } from './settling-switch.ts';

/** What settlement by this process needs. Every process has it, also one that never settles. */
export interface SettlingParts
  extends Pick<RailKit, 'config' | 'ledger' | 'token' | 'clock' | 'log'>,
    Pick<RailKit, 'chain' | 'wallet' | 'check' | 'evidence' | 'spending' | 'settled' | 'metrics'> {
  rails: readonly OpenRail[];
  /** Opens the books against the chain. Absent in a command that works in the service's place. */
  openBooks?: ((rails: readonly BookRail[]) => Books) | undefined;
}

interface OpenSettlingOptions {
  place: SettlingPlace;
  /** Called with the state of a row that another process settles, once no call of this process waits for that row. */
  onLeft?: ((id: string, state: Payment['state'] | null) => void) | undefined;
}

/** Opens settlement by this process, or by the instance that leads. */
export function openSettling(parts: SettlingParts, { place, onLeft }: OpenSettlingOptions): MaintainedSettling {
  const { config, ledger, clock, log } = parts;
  switch (place.kind) {
    case 'local': {
      const takeOver = createRecovery({ ledger, living: undefined, takeOverAfterMs: 0, clock, log });
      return openLocalSettling(parts, { takeOver, isShared: false });
    }
    case 'switched': {
      const { process, living, takeOverAfterMs, join } = place;
      const takeOver = createRecovery({ ledger, living, takeOverAfterMs, clock, log });
      const openLocal = (fencingToken: number) => openLocalSettling(parts, { takeOver, isShared: true, fencingToken });
      const remote = createRemoteSettling({ ledger, process, clock, waitMs: config.settleWaitMs, onLeft, log });
      return createSwitchedSettling({ remote, openLocal, takeOver, join, log });
    }
  }
}

interface LocalTerms {
  takeOver: SettlesForOthers['takeOver'];
  isShared: boolean;
  /** The fencing token of this process's lease, where several processes may settle. */
  fencingToken?: number;
}

/** Opens settlement by this process: the rails that are on, the tasks for the rows, and the rounds of maintenance. */
function openLocalSettling(parts: SettlingParts, { takeOver, isShared, fencingToken }: LocalTerms): LocalSettling {
  const { config, token, ledger, clock, log } = parts;
  const noteBroadcast: SettlingTerms['noteBroadcast'] = (entries) => ledger.noteBroadcast(entries, fencingToken);
  const relayer = createSharedRelayer(parts, noteBroadcast);
  const terms: SettlingTerms = { noteBroadcast, fencingToken, relaying: relayer.open };
  const rails = parts.rails.map((rail) => ({ rail, settling: rail.openSettling(terms) }));
  const books = parts.openBooks?.(
    rails.map(({ rail, settling }) => ({
      name: rail.info.name,
      contract: rail.purchase.contract,
      books: settling.books,
    })),
  );
  // The relayer is maintained once, and not by each rail that uses it.
  const all = [...relayer.opened(), ...rails.map(({ settling }) => settling)];
  /** Null for a rail that is off. Its rows stay as they are, because no other rail can read their evidence. */
  const railOf = (contract: Uint8Array): SettlingRail | null =>
    rails.find(({ rail }) => Buffer.compare(rail.purchase.contract, contract) === 0)?.settling ?? null;
  const watch = createRailWatch(() => probeAll(rails, config.rails), clock, log);
  const settlement = createSettlement({ ledger, railOf, clock, waitMs: config.settleWaitMs, fencingToken, log });
  return createLocalSettling({
    ledger,
    settlement,
    settlers: Object.fromEntries(rails.map(({ rail, settling }) => [rail.info.name, settling.settler])),
    probes: watch.latest,
    detail: () => all.map((part) => part.detail?.() ?? null).find((detail) => detail !== null) ?? null,
    takeOver,
    isShared,
    load: async () => {
      for (const part of all) await part.load?.();
    },
    /**
     * Tries all parts. Then rejects with the first failure. A comparison of the books may be long, and nothing waits
     * for it.
     */
    refresh: () => {
      void books?.due();
      return allTried([...all.map((part) => part.refresh?.()), token.refresh(), watch.refresh()]);
    },
    /** The relayer stops after the rails, because a rail that stops may still send something: channels send their last claims. */
    stopSettlers: async () => {
      await books?.stop();
      await Promise.all(rails.map(({ settling }) => settling.settler.stop()));
      await Promise.all(relayer.opened().map(({ settler }) => settler.stop()));
    },
  });
}

/** Our relayer, opened when the first rail asks for it. A rail that a remote service settles asks for none. */
function createSharedRelayer(parts: SettlingParts, noteBroadcast: SettlingTerms['noteBroadcast']) {
  let relaying: Relaying | null = null;
  const byRail = new Map<string, Relaying>();
  const incomeToday = createIncome(parts, (rail) => byRail.has(rail));

  return {
    open: (rail: string): Relaying => {
      const { wallet } = parts;
      if (!wallet) throw new Error('RELAYER_PRIVATE_KEY is missing');
      relaying ??= createRelaying({ ...parts, wallet, incomeToday, noteBroadcast });
      parts.metrics?.watchRail(rail);
      const own = byRail.get(rail) ?? relayingFor(rail, relaying);
      byRail.set(rail, own);
      return own;
    },
    opened: (): Relaying[] => (relaying ? [relaying] : []),
  };
}

/** What the payments on rails that use our relayer brought in this UTC day, in USDC base units. */
function createIncome(
  { rails, settled, clock }: Pick<SettlingParts, 'rails' | 'settled' | 'clock'>,
  isRelayed: (rail: string) => boolean,
): () => Promise<bigint> {
  const wayOf = (signedFor: Uint8Array | null) => {
    const rail = rails.find(({ purchase }) => signedFor && Buffer.compare(purchase.contract, signedFor) === 0);
    return rail && isRelayed(rail.info.name) ? 'relayed' : 'other';
  };
  const sums = createSettledToday(settled, wayOf, clock);
  return async () => (await sums()).find(({ rail }) => rail === 'relayed')?.amount ?? 0n;
}

/** The relayer as one rail uses it: what the rail sends bears its name. A rail that stops does not stop the relayer, because other rails use it. */
function relayingFor(rail: string, relaying: Relaying): Relaying {
  const { settler, operate } = relaying;
  return {
    ...relaying,
    settler: {
      ...settler,
      settle: (intents) => settler.settle(intents.map((intent) => ({ ...intent, rail }))),
      stop: async () => {},
    },
    operate: (operation) => operate({ ...operation, rail }),
  };
}

interface SettledRail {
  readonly rail: OpenRail;
  readonly settling: RailSettling;
}

/** Probes each remote service. Never rejects. The relayer is no remote service: it watches its own balance. */
async function probeAll(rails: readonly SettledRail[], config: RailsConfig): Promise<RailProbes> {
  const asked = rails.flatMap(({ rail, settling }) => {
    const [service, probe] = [rail.info.service(config), settling.probe?.()];
    return service && probe ? [probe.then((found) => [service.name, found] as const)] : [];
  });
  return Object.fromEntries(await Promise.all(asked));
}
