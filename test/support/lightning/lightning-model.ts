import type {
  Claim,
  ClaimAccount,
  ClaimOutcome,
  InvoiceRecord,
  NewClaim,
  ReachedCap,
} from '../../../src/store/ports/lightning.ts';

interface ModelClaim {
  readonly claim: NewClaim;
  state: 'claimed' | 'delivered';
  redeemUntil: number;
  deliveredAt: number | null;
  answer: string | null;
  answered: boolean;
  lease: { holder: string; until: number } | null;
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The days of the facilitator: what was claimed on each, for which payee and by which clients. */
function createDays() {
  const days = new Map<string, { claims: number; open: number; knownPayees: number }>();
  const clients = new Map<string, number>();
  const payees = new Map<string, Map<string, { claims: number; clients: Set<string> }>>();

  /** Three earlier days of the last thirty, and two clients on them. */
  function isKnown(payTo: string, day: string): boolean {
    const since = new Date(Date.parse(day) - 30 * 86_400_000).toISOString().slice(0, 10);
    const earlier = [...(payees.get(payTo) ?? [])].filter(([one]) => one >= since && one < day).map(([, row]) => row);
    return earlier.length >= 3 && new Set(earlier.flatMap((row) => [...row.clients])).size >= 2;
  }

  function dayOf(day: string) {
    const known = () => [...payees.keys()].filter((payTo) => isKnown(payTo, day)).length;
    return days.get(day) ?? { claims: 0, open: 0, knownPayees: known() };
  }

  function placeOf(account: ClaimAccount, payTo: string): 'known' | 'open' | ReachedCap {
    const { day, dailyCap, clientCap, payeeCap, openCap } = account;
    const today = dayOf(day);
    const ofPayee = payees.get(payTo)?.get(day)?.claims ?? 0;
    if (today.claims >= dailyCap) return 'daily_cap';
    if ((clients.get(`${day} ${hex(account.clientHash)}`) ?? 0) >= clientCap) return 'client_cap';
    if (ofPayee >= payeeCap) return 'payee_cap';
    const known = isKnown(payTo, day);
    const share = Math.max(1, Math.floor((dailyCap - openCap) / Math.max(1, today.knownPayees)));
    if (known && ofPayee < share && today.claims - today.open < dailyCap - openCap) return 'known';
    if (today.open < openCap) return 'open';
    return known ? 'known_cap' : 'open_cap';
  }

  return {
    days,
    clients,
    payees,
    count(account: ClaimAccount, payTo: string): ReachedCap | null {
      const place = placeOf(account, payTo);
      if (place !== 'known' && place !== 'open') return place;
      const { day } = account;
      const { claims, open, knownPayees } = dayOf(day);
      days.set(day, { claims: claims + 1, open: open + (place === 'open' ? 1 : 0), knownPayees });
      const client = `${day} ${hex(account.clientHash)}`;
      clients.set(client, (clients.get(client) ?? 0) + 1);
      const own = payees.get(payTo) ?? new Map<string, { claims: number; clients: Set<string> }>();
      const row = own.get(day) ?? { claims: 0, clients: new Set() };
      row.clients.add(hex(account.payeeClientHash));
      own.set(day, { claims: row.claims + 1, clients: row.clients });
      payees.set(payTo, own);
      return null;
    },
  };
}

/** A model of the store's behaviour in a few maps, without a disk. Proofs have names. */
export function createLightningModel() {
  const invoices = new Map<string, { record: InvoiceRecord; reply: string | null }>();
  const claims = new Map<string, ModelClaim>();
  const { days, clients, payees, count } = createDays();
  const granted = (name: string) => {
    const found = claims.get(name);
    return found?.claim.grant ? found : null;
  };
  const live = (found: ModelClaim, now: number): boolean =>
    found.claim.grant !== null && (found.redeemUntil > now || (found.lease?.until ?? 0) > now);

  return {
    record(name: string, record: InvoiceRecord, reply: string): boolean {
      if (invoices.has(name)) return false;
      invoices.set(name, { record, reply });
      return true;
    },
    claim(name: string, claim: NewClaim): ClaimOutcome {
      const { account, grant } = claim;
      const spent = claims.get(name)?.claim;
      const isAnothers = spent && !spent.grant && hex(spent.payTo) !== hex(claim.payTo);
      if (spent && !(grant && isAnothers)) return 'duplicate';
      const cap = account && count(account, hex(claim.payTo));
      if (cap) return cap;
      const redeemUntil = grant?.redeemUntil ?? 0;
      const fresh = { deliveredAt: null, answer: null, answered: false, lease: null };
      const keepUntil = Math.max(claim.keepUntil, spent?.keepUntil ?? 0);
      claims.set(name, { claim: { ...claim, keepUntil }, state: 'claimed', redeemUntil, ...fresh });
      return 'claimed';
    },
    takeLease(name: string, holder: string, now: number, until: number): boolean {
      const found = granted(name);
      if (!found || found.redeemUntil <= now || (found.lease?.until ?? 0) > now) return false;
      found.lease = { holder, until };
      return true;
    },
    releaseLease(name: string, holder: string): void {
      const found = granted(name);
      if (found?.lease?.holder === holder) found.lease = null;
    },
    releaseLeasesExcept(bootId: string): number {
      const others = [...claims.values()].filter(({ lease }) => lease && !lease.holder.startsWith(bootId));
      for (const other of others) other.lease = null;
      return others.length;
    },
    storeAnswer(name: string, holder: string, answer: string): boolean {
      const found = granted(name);
      if (!found || found.answered || found.lease?.holder !== holder) return false;
      Object.assign(found, { answered: true, answer });
      const invoice = invoices.get(name);
      if (invoice) invoice.reply = null;
      return true;
    },
    delivered(name: string, now: number, keepUntil: number): boolean {
      const found = granted(name);
      const gone = found?.answered && found.answer === null;
      if (!found || found.state === 'delivered' || gone) return false;
      Object.assign(found, { state: 'delivered', deliveredAt: now, redeemUntil: keepUntil });
      return true;
    },
    prune(now: number): void {
      for (const found of claims.values()) if (!live(found, now)) found.answer = null;
      for (const [name, { record }] of invoices) {
        const found = claims.get(name);
        const needed = found && !found.answered && live(found, now);
        if (record.forgetAt <= now && !needed) invoices.delete(name);
      }
      for (const [name, found] of claims) {
        if (found.claim.keepUntil <= now && !live(found, now) && !invoices.has(name)) claims.delete(name);
      }
      const oldest = new Date(now - 2 * 86_400_000).toISOString().slice(0, 10);
      for (const client of clients.keys()) if (client.slice(0, 10) < oldest) clients.delete(client);
    },
    invoice: (name: string): InvoiceRecord | null => invoices.get(name)?.record ?? null,
    reply: (name: string): string | null => invoices.get(name)?.reply ?? null,
    answer: (name: string): string | null => claims.get(name)?.answer ?? null,
    find(name: string): Claim | null {
      const found = claims.get(name);
      if (!found) return null;
      const { network, paymentHash, payTo, amountMsat, claimedAt, grant } = found.claim;
      const { state, redeemUntil, deliveredAt, answer } = found;
      const rest = { state, redeemUntil, deliveredAt, answered: answer !== null };
      const now = grant && { requestHash: grant.requestHash, protocol: grant.protocol, ...rest };
      return { network, paymentHash, payTo, amountMsat, claimedAt, grant: now };
    },
    counts: (day: string, own: Uint8Array) => ({
      total: [...days.values()].reduce((sum, { claims }) => sum + claims, 0),
      today: days.get(day)?.claims ?? 0,
      nodes: payees.size,
      own: [...(payees.get(hex(own))?.values() ?? [])].reduce((sum, { claims }) => sum + claims, 0),
    }),
    clientCount: (day: string, client: Uint8Array): number => clients.get(`${day} ${hex(client)}`) ?? 0,
    bodyBytes: (): number => {
      const bodies = [
        ...[...invoices.values()].map(({ reply }) => reply),
        ...[...claims.values()].map((c) => c.answer),
      ];
      return bodies.reduce((sum, text) => sum + (text?.length ?? 0), 0);
    },
  };
}
