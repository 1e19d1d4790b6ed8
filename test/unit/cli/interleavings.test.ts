import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { BatchSettlementEvmScheme, computeChannelId } from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { privateKeyToAccount } from 'viem/accounts';
import { describe, expect, test } from 'vitest';
import { openBuyer } from '../../../cli/buyer.ts';
import type { Buyer, Call, Limits, Outcome } from '../../../cli/port.ts';
import type { Seller } from '../../../cli/seller.ts';
import type { Wallet } from '../../../cli/wallet/record.ts';
import {
  ARC,
  CHARGED_BEFORE,
  challengeOf,
  createModelSeller,
  type ModelSeller,
  PRICE,
  PRICE_MSAT,
  type Rail,
} from '../../support/cli/model-seller.ts';
import { seed, seededRandom } from '../../support/random.ts';

// Calls, kills and lost answers in an order that is drawn from a seed. A process that is killed does nothing more: each
// of its steps outside itself, on the record, to the seller or to the wallet, throws from then on. The books are the
// seller's, never the buyer's own.

const KEY = `0x${'11'.repeat(32)}` as const;
/** In a thousand steps outside a process. */
const KILLS = 35;
const RAILS: readonly Rail[] = ['exact', 'lightning', 'channel'];

/** A thousand take two minutes on a quiet machine. */
const TIME_MS = 1_800_000;

class Killed extends Error {}

/** A process of the buyer, which dies at a step that is drawn. */
interface Process {
  readonly buyer: Buyer;
  isDead: boolean;
}

interface World {
  readonly folder: string;
  readonly rail: Rail;
  readonly seller: ModelSeller;
  readonly random: () => number;
  readonly alive: Set<string>;
  kills: number;
  count: number;
}

function startProcess(world: World, chance = KILLS): Process {
  const name = `process-${++world.count}`;
  world.alive.add(name);
  const self = { isDead: false };
  /** One step outside the process. It may be its last one, before or after it was done. */
  const step = <T>(run: () => T): T => {
    if (self.isDead) throw new Killed();
    const die = (): never => {
      self.isDead = true;
      world.kills += 1;
      world.alive.delete(name);
      throw new Killed();
    };
    const drawn = world.random() * 1000;
    if (drawn < chance / 2) die();
    const done = run();
    if (drawn < chance) die();
    return done;
  };
  const stepwise = (wallet: Wallet): Wallet =>
    new Proxy(wallet, {
      get(of, key: keyof Wallet) {
        const value: unknown = of[key];
        if (typeof value !== 'function') return value;
        return (...args: unknown[]) => step(() => (value as (...given: unknown[]) => unknown)(...args));
      },
    });
  const sellerOf = (call: Call): Seller => {
    const seller = world.seller.sellerOf(call);
    const send: Seller['send'] = async (payment) => {
      step(() => {});
      await turn();
      const reply = await seller.send(payment);
      await turn();
      return step(() => reply);
    };
    return { ...seller, send };
  };
  const { payer } = world.seller;
  const walletOf = {
    ...payer,
    pay: async (...args: Parameters<typeof payer.pay>) => {
      step(() => {});
      const preimage = await payer.pay(...args);
      await turn();
      return step(() => preimage);
    },
    find: async (...args: Parameters<typeof payer.find>) => {
      const preimage = await payer.find(...args);
      return step(() => preimage);
    },
  };
  const env = world.rail === 'lightning' ? { PAYER_URL: 'http://wallet.test' } : { BUYER_PRIVATE_KEY: KEY };
  const settings = { dataDir: world.folder, env, rpcUrl: null, btcUsd: null, discovery: null };
  const buyer = openBuyer(settings, {
    sellerOf,
    payerFrom: async () => (world.rail === 'lightning' ? walletOf : null),
    through: stepwise,
    delay: async () => void (await turn()),
    holder: { name, isAlive: (other) => [...world.alive].some((one) => other.split(' ')[0] === one) },
  });
  return Object.assign(self, { buyer });
}

const limits = (rail: Rail): Limits => ({
  maxUnits: 10_000n,
  maxMsat: 100_000n,
  rail: null,
  protocol: null,
  via: rail === 'channel' ? 'channel' : null,
  shown: null,
  maxDeposit: 0n,
  confirm: null,
  say: () => {},
});

const callOf = (target: string): Call => ({
  kind: 'http',
  method: 'GET',
  url: new URL(`http://seller.test${target}`),
  body: null,
});

/** The buyer's record of the channel has a deposit, so that each call is a voucher. */
async function openChannel(folder: string): Promise<void> {
  const storage = new FileClientChannelStorage({ directory: join(folder, 'channels') });
  const [entry] = challengeOf('channel', '/').accepts;
  const scheme = new BatchSettlementEvmScheme(privateKeyToAccount(KEY), { storage });
  const id = computeChannelId(scheme.buildChannelConfig(entry as never), ARC.network);
  const record = { balance: '100000000', chargedCumulativeAmount: CHARGED_BEFORE.toString(), totalClaimed: '0' };
  await storage.set(id, record);
}

/** Plays one interleaving, and returns what was wrong with it, and what happened. */
async function play(name: string, processes: number) {
  const random = seededRandom(`buyer ${processes} ${name}`);
  const rail = RAILS[Math.floor(random() * RAILS.length)] ?? 'exact';
  const folder = mkdtempSync(join(tmpdir(), 'percall-interleaving-'));
  try {
    if (rail === 'channel') await openChannel(folder);
    const seller = createModelSeller(rail, random);
    const world: World = { folder, rail, seller, random, alive: new Set(), kills: 0, count: 0 };
    const targets = Array.from({ length: 2 + Math.floor(random() * 4) }, (_, at) => `/call-${at}`);
    const [price, unit] = rail === 'lightning' ? [PRICE_MSAT, 'sats' as const] : [PRICE, 'usdc' as const];
    // Enough for all calls, or for some of them.
    const budget = price * BigInt(1 + Math.floor(random() * (targets.length + 1)));
    const faults: string[] = [];
    /** The payments of each call that had their answer. */
    const delivered = new Map<string, Set<string>>();
    const answeredBy = (target: string, { answer, payment }: Extract<Outcome, { kind: 'answered' }>): void => {
      if (answer.body.toString() !== target) faults.push(`${target} has the answer of ${answer.body}`);
      delivered.set(target, (delivered.get(target) ?? new Set()).add(payment?.id ?? 'free'));
    };
    const first = startProcess(world, 0);
    first.buyer.budgets.set('day', unit, budget);
    first.buyer.close();
    const check = (): void => {
      if (seller.held() > budget) faults.push(`${seller.held()} is spent of a budget of ${budget}`);
    };

    const run = async (steps: number, chance = KILLS): Promise<void> => {
      let self = startProcess(world, chance);
      for (let at = 0; at < steps; at++) {
        const target = targets[Math.floor(random() * targets.length)] ?? '/';
        const ended = await self.buyer.pay(callOf(target), limits(rail)).catch((error: unknown) => {
          if (!(error instanceof Killed)) throw error;
          return null;
        });
        check();
        try {
          if (ended?.kind === 'answered' && !self.isDead) {
            answeredBy(target, ended);
            ended.delivered();
          }
        } catch (error) {
          if (!(error instanceof Killed)) throw error;
        }
        if (self.isDead) self = startProcess(world, chance);
      }
    };
    await Promise.all(Array.from({ length: processes }, () => run(targets.length * 2)));

    // In the end the seller answers, and nobody is killed: what was paid for has its answer.
    seller.calm();
    const last = startProcess(world, 0);
    // A channel takes no other call before the one that waits has its answer.
    const isWaiting = (target: string): boolean => last.buyer.open().some(({ call }) => call.endsWith(target));
    for (const target of [...targets].sort((a, b) => Number(isWaiting(b)) - Number(isWaiting(a)))) {
      const isOpen = isWaiting(target);
      if (delivered.has(target) && !isOpen) continue;
      const ended = await last.buyer.pay(callOf(target), limits(rail));
      if (ended.kind === 'answered') {
        answeredBy(target, ended);
        ended.delivered();
      } else if (isOpen || ended.kind !== 'refused' || ended.reason !== 'above-budget')
        faults.push(`${target}: ${ended.kind}, ${ended.message}`);
      check();
    }
    for (const target of targets) {
      const [charges, answers] = [seller.charges.get(target) ?? 0, delivered.get(target)?.size ?? 0];
      if (charges > answers) faults.push(`${target} is charged ${charges} times, and answered ${answers} times`);
    }
    if (last.buyer.open().length > 0) faults.push('a payment waits still');
    last.buyer.close();
    return { faults: faults.map((fault) => `seed ${seed}, ${name} (${rail}): ${fault}`), world, delivered, targets };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

describe.each([
  [1, process.env.SLOW ? 1000 : 40],
  [2, process.env.SLOW ? 1000 : 40],
])('calls, kills and lost answers of %i processes that share a wallet', (processes, count) => {
  test(
    `${count} interleavings of the seed ${seed}: never above the budget, no call twice, every paid call answered`,
    async () => {
      const faults: string[] = [];
      let [kills, answers] = [0, 0];
      for (let at = 0; at < count; at++) {
        const played = await play(String(at), processes);
        faults.push(...played.faults);
        kills += played.world.kills;
        answers += played.delivered.size;
      }
      expect(faults).toEqual([]);
      // It shows that the test killed and bought.
      expect(kills).toBeGreaterThan(count);
      expect(answers).toBeGreaterThan(count);
    },
    TIME_MS,
  );
});
