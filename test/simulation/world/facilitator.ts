import { WORLD } from '../engine/owner.ts';
import type { Random } from '../engine/random.ts';
import type { Scheduler } from '../engine/scheduler.ts';
import type { Host, WireAnswer, WireFault, WireRequest } from '../network/wire.ts';
import type { Chain, Mined } from './chain/chain.ts';
import type { Account, Hex } from './chain/keys.ts';
import { type Terms, transferCalldata, USDC } from './chain/token.ts';
import { signTransaction } from './chain/transactions.ts';
import { type Handed, readHanded } from './handed.ts';

/** How the facilitator behaves at present. */
export interface FacilitatorMood {
  fault: WireFault | null;
  faultPercent: number;
  /** Added to every settlement. */
  slowMs: number;
  /** What it says in place of the truth. */
  lies: 'no' | 'another hash' | 'success without a transaction' | 'refused after all' | 'pending';
}

export const PLAIN_DEALING: Readonly<FacilitatorMood> = { fault: null, faultPercent: 100, slowMs: 0, lies: 'no' };

interface FacilitatorOptions {
  readonly chain: Chain;
  readonly scheduler: Scheduler;
  readonly random: Random;
  readonly account: Account;
  /** Called with every authorization that is handed over, when it arrives. */
  onHanded(handed: Handed): void;
}

const ORIGIN = 'http://facilitator.test';
/** As the SDK's facilitator waits for a receipt. */
const LATEST_MS = 20_000;
const LOOK_MS = 250;

/** Somebody's x402 facilitator: checks by trying out, sends from its own account, answers when it is mined. Circle's words where it is pending. */
export function createFacilitator({ chain, scheduler, random, account, onHanded }: FacilitatorOptions) {
  const network = `eip155:${chain.chainId}`;
  const mood: FacilitatorMood = { ...PLAIN_DEALING };
  const jobs = new Map<string, Promise<WireAnswer>>();
  /** When the settlement began that sent a transaction, by its hash. */
  const begun = new Map<string, number>();
  let nonce = 0;

  const json = (body: object, status = 200): WireAnswer => ({
    status,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const no = (errorReason: string, transaction = ''): WireAnswer =>
    json({ success: false, errorReason, transaction, network });
  const sleep = (ms: number) => new Promise<void>((next) => void scheduler.after(ms, WORLD, 'facilitator', next));

  /** What it finds before it sends: the SDK's own words. */
  function wrong({ terms, signature, payTo, amount }: Handed): string | null {
    const now = BigInt(Math.floor(scheduler.nowMs() / 1000));
    const view = chain.viewAt(chain.head());
    if (terms.to !== payTo) return 'invalid_exact_evm_payload_recipient_mismatch';
    if (terms.value !== amount) return 'invalid_exact_evm_payload_authorization_value_mismatch';
    if (terms.validBefore < now + 6n) return 'invalid_exact_evm_payload_authorization_valid_before';
    if (terms.validAfter > now) return 'invalid_exact_evm_payload_authorization_valid_after';
    if (view.get(`authorization ${terms.from}${terms.nonce}`)) return 'invalid_exact_evm_nonce_already_used';
    const data = transferCalldata(terms, signature);
    const tried = chain.call(chain.head(), { from: account.address, to: USDC, data, gas: 1_000_000, gasPrice: 0n });
    return tried.ok ? null : 'invalid_exact_evm_transaction_simulation_failed';
  }

  function send(terms: Terms, signature: Buffer): Hex {
    const fee = chain.feeAt(chain.head());
    const call = { nonce: nonce++, tip: 100_000_000n, maxFee: 3n * fee, gas: 500_000, to: USDC, value: 0n };
    const raw = signTransaction(account, chain.chainId, { ...call, data: transferCalldata(terms, signature) });
    return chain.submit(raw).hash as Hex;
  }

  async function mined(hash: Hex): Promise<Mined | null> {
    for (const until = scheduler.nowMs() + LATEST_MS; scheduler.nowMs() < until; ) {
      chain.head();
      const found = chain.mined(hash);
      if (found) return found;
      await sleep(LOOK_MS);
    }
    return null;
  }

  async function settle(handed: Handed): Promise<WireAnswer> {
    const beganMs = scheduler.nowMs();
    if (mood.slowMs > 0) await sleep(mood.slowMs);
    const reason = wrong(handed);
    if (reason !== null) return no(reason);
    const hash = send(handed.terms, handed.signature);
    begun.set(hash, beganMs);
    const found = await mined(hash);
    if (!found) return no('settlement_unconfirmed', hash);
    if (!found.ok) return no('invalid_exact_evm_transaction_failed', hash);
    return json({ success: true, transaction: hash, network, payer: handed.terms.from, amount: String(handed.amount) });
  }

  /** The same authorization twice is one piece of work. */
  function once(handed: Handed): Promise<WireAnswer> {
    const key = `${handed.terms.from}${handed.terms.nonce}${handed.signature.toString('hex')}`;
    const known = jobs.get(key);
    if (known) return known;
    const job = settle(handed).finally(() => jobs.delete(key));
    jobs.set(key, job);
    return job;
  }

  function distorted(answer: WireAnswer): WireAnswer {
    if (mood.lies === 'another hash')
      return json({ success: true, transaction: `0x${random.bytes(32).toString('hex')}`, network });
    if (mood.lies === 'success without a transaction') return json({ success: true, transaction: '', network });
    if (mood.lies === 'refused after all')
      return json({ success: false, errorReason: 'insufficient_funds', transaction: '', network });
    return answer;
  }

  async function serve(request: WireRequest): Promise<WireAnswer> {
    if (request.path === '/supported') {
      const extra = { name: 'USDC', version: '2', assetTransferMethod: 'eip3009' };
      return json({ kinds: [{ x402Version: 2, scheme: 'exact', network, extra }], extensions: [], signers: {} });
    }
    if (request.path !== '/settle') return json({ status: 'pending' }, request.path.startsWith('/status/') ? 200 : 404);
    const handed = readHanded(request.body);
    if (!handed) return no('invalid_payload');
    onHanded(handed);
    const work = once(handed);
    if (mood.lies !== 'pending') return distorted(await work);
    const extensions = { 'settlement-status': { status: 'pending', paymentId: random.bytes(8).toString('hex') } };
    return json({ success: false, errorReason: 'settlement_pending', network, extensions });
  }

  const host: Host = {
    serve: (request, answer) => void serve(request).then(answer),
    fault: ({ path }) =>
      path === '/settle' && mood.fault && random.chance(mood.faultPercent / 100) ? mood.fault : null,
    latencyMs: [5, 40],
  };
  return {
    origin: ORIGIN,
    host,
    mood,
    address: account.address,
    /** Whether it may still take this authorization's money. */
    /** When the authorization arrived for which it sent this transaction; undefined for a transaction of somebody else. */
    beganMs: (hash: Hex): number | undefined => begun.get(hash),
    heal: () => void Object.assign(mood, PLAIN_DEALING),
  };
}

export type Facilitator = ReturnType<typeof createFacilitator>;
