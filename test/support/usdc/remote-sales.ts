import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { systemClock } from '../../../src/lib/clock.ts';
import { hexToBytes } from '../../../src/lib/hex.ts';
import { createLedger } from '../../../src/payment/ledger.ts';
import { createSettleRows } from '../../../src/payment/settle-rows.ts';
import { type Authorization, paymentKey, type Settler } from '../../../src/payment/settler.ts';
import { hashAuthorization } from '../../../src/payment/usdc/authorization.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { gathered } from '../gathered.ts';
import { openTestLedger, storesOf } from '../ledger/fresh-ledger.ts';
import { quiet } from '../quiet.ts';

/** A client's time-out in these suites, in milliseconds. A buyer is held a little longer. */
export const TIMEOUT_MS = 600;
export const WAIT_MS = 900;

const BODY = Buffer.from('{"sold":true}');

type NoteBroadcast = (entries: { id: string; transaction: Uint8Array }[]) => Promise<ReadonlySet<string>>;

/** Sales over one rail, with the real ledger on disk and the real settlement, without HTTP. */
export function openSales(network: string, contract: `0x${string}`, makeSettler: (note: NoteBroadcast) => Settler) {
  const folder = mkdtempSync(join(tmpdir(), 'percall-remote-'));
  const db = openTestLedger(join(folder, 'ledger.db'));
  const store = storesOf(db).payments;
  const clock = systemClock;
  const limits = { storeBytes: 1e9, keepSeconds: 900, maxDeliveries: 5, maxOpen: 0 };
  const ledger = createLedger({ store, clock, bootId: 'this', ...limits });
  const settler = makeSettler(ledger.noteBroadcast);
  const rows = createSettleRows({ clock, log: quiet }, ledger, () => settler, WAIT_MS);
  // Ids of the sales under way. As in the service, a reconciliation leaves their rows alone: it would release a reservation.
  const selling = new Set<string>();
  const reconcile = () => rows.reconcile(({ id }) => selling.has(id));

  /** Serves and settles a payment as a purchase does. Null when it was sold before. */
  async function sell(authorization: Authorization, fromBlock = 0): Promise<Payment | null> {
    let reserved = '';
    const onId = (id: string) => {
      reserved = id;
      selling.add(id);
    };
    return sellAs(onId, authorization, fromBlock).finally(() => selling.delete(reserved));
  }

  async function sellAs(
    onId: (id: string) => void,
    authorization: Authorization,
    fromBlock: number,
  ): Promise<Payment | null> {
    const { value: amount, to: payTo, validAfter, validBefore, signature } = authorization;
    const authorizationHash = hashAuthorization(authorization, hexToBytes(contract));
    const key = paymentKey(authorization, network, hexToBytes(contract));
    const known = await ledger.find(key);
    const hash = randomBytes(32);
    const hashes = { requestHash: hash, clientHash: hash, identifierHash: null };
    const sold = { price: amount, route: '/v1/paid/a', protocol: 'x402' };
    const terms = { amount, payTo, validAfter, validBefore, authorizationHash, ...sold };
    const id = await ledger.reserve({ ...key, ...terms, ...hashes }, known !== null, onId);
    if (id === null) return null;
    await ledger.storeIntent(id, { signature, checkedBlock: fromBlock, payerHasCode: false, body: BODY });
    return rows.settle(
      { id, authorization, call: null, fromBlock, broadcast: false, hasCode: false },
      hexToBytes(contract),
    );
  }

  return {
    ledger,
    settler,
    store,
    sell,
    reconcile,
    transfers: storesOf(db).transfers,
    row: (authorization: Authorization) => ledger.find(paymentKey(authorization, network, hexToBytes(contract))),
    /** Reconciles until no payment is open. */
    resolveAll: async () => {
      for (let round = 0; round < 600; round++) {
        await reconcile();
        await rows.idle();
        if ((await gathered(ledger.unfinished())).length === 0) return;
        await new Promise((next) => setTimeout(next, 100));
      }
      throw new Error('not everything came to an end');
    },
    close: async () => {
      await settler.stop();
      await rows.idle();
      await store.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

export type Sales = ReturnType<typeof openSales>;
