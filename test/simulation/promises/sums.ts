import { COLLECTOR } from '../world/chain/channel-terms.ts';
import type { World } from '../world/world.ts';
import { readLedgers, type SaleRow } from './ledger.ts';
import type { Tell } from './promise.ts';

/** At rest: the ledger and the world tell the same of every payment, whichever of the two is asked first. */
export function checkSums(world: World, tell: Tell): void {
  const { evidence, accounts, gateway, lightning } = world;
  const ledgers = readLedgers(world);
  const sales = ledgers.flatMap((ledger) =>
    ledger.sales.map((row) => ({ ...row, by: ledger.isTwin ? 'twin' : 'main' })),
  );
  const byKey = new Map(sales.map((row) => [`${row.rail} ${row.payer} ${row.nonce}`, row]));
  const seller = accounts.seller.address;
  const ours = new Set<string>([accounts.relayer.address, accounts.facilitator.address]);

  /** What came in for a row; null where nothing did. */
  function received({
    rail,
    payer,
    nonce,
    by,
  }: SaleRow & { readonly by: string }): { units: bigint; byUs: boolean } | null {
    if (rail !== 'gateway') {
      const ended = evidence.of(payer, nonce);
      return ended?.kind === 'paid' && ended.to === (rail === 'channels' ? COLLECTOR : seller)
        ? { units: ended.units, byUs: ours.has(ended.sender) }
        : null;
    }
    const transfer = gateway.transfers().find((one) => one.from === payer && one.nonce === nonce);
    if (transfer?.to !== seller || transfer.status === 'failed') return null;
    return { units: transfer.units, byUs: transfer.by === by };
  }

  for (const row of sales) {
    // A voucher moves nothing on the chain; `channels.ts` judges what it charged.
    if (row.rail === 'channels' && row.validBefore === 0n) continue;
    const money = received(row);
    const name = `${row.rail} ${row.nonce.slice(0, 10)}`;
    if (row.state === 'settled' && money?.units !== row.amount)
      tell('the ledger equals the chain', `${name} is settled over ${row.amount}, and ${money?.units ?? 0n} came in`);
    if (row.state === 'failed' && money?.byUs)
      tell('what failed cost nothing', `${name} has failed (${row.reason}), and ${money.units} were taken`);
    if ((row.state === 'settled' || row.state === 'failed') && row.signature !== null)
      tell('no secret leaves', `${name} has ended, and its signature is still in the ledger`);
  }
  for (const [key, ended] of evidence.all()) {
    if (ended.kind !== 'paid' || !ours.has(ended.sender)) continue;
    const rail = ended.to === seller ? 'usdc' : ended.to === COLLECTOR ? 'channels' : null;
    const known = rail === null || byKey.get(`${rail} ${key.slice(0, 42)} ${key.slice(42)}`);
    if (!known)
      tell(
        'the ledger equals the chain',
        `${ended.units} were taken in ${ended.hash.slice(0, 10)}, and the ledger knows nothing of it`,
      );
  }
  for (const transfer of gateway.transfers()) {
    const key = `gateway ${transfer.from} ${transfer.nonce}`;
    if (transfer.to === seller && transfer.by !== null && !byKey.has(key))
      tell('the ledger equals the chain', `the Gateway holds ${transfer.units} that the ledger knows nothing of`);
  }
  // The service compares its books with the chain by itself, and must not stop a rail whose money came in.
  for (const { missing } of ledgers)
    for (const name of missing) tell('the ledger equals the chain', `the books say that the chain lacks ${name}`);
  for (const { claims } of ledgers)
    for (const { paymentHash, grants } of claims)
      if (grants && !lightning.invoices().some((one) => one.paymentHash === paymentHash && one.ours && one.paid))
        checkUnpaidClaim(world, paymentHash, tell);
}

/** A claim may stand without a payment where the node is shared and could not be asked: then nothing was delivered for it. */
function checkUnpaidClaim({ book, scenario }: World, paymentHash: string, tell: Tell): void {
  const isServed = book.of(`lightning ${paymentHash}`).some(({ reported }) => reported?.status === 200);
  if (isServed || scenario.lightning !== 'shared')
    tell(
      'the ledger equals the chain',
      `the proof ${paymentHash.slice(0, 8)} was claimed, and the node has no payment`,
    );
}
