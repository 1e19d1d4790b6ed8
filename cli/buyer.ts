import { randomUUID } from 'node:crypto';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { addressIn, buyerKey, type Env, payerFrom } from './keys.ts';
import { payCall, priceCall } from './pay.ts';
import type { Buyer, BuyerSettings } from './port.ts';
import { createOwnRate } from './rate.ts';
import { sellerOf } from './seller.ts';
import type { Shop } from './shop.ts';
import { sweepExpired, usdcBalance } from './wallet/chain.ts';
import { type Holder, openRecord } from './wallet/record.ts';

/** What a buyer takes from its surroundings. Tests give their own. */
export interface Surroundings extends Pick<Shop, 'sellerOf' | 'payerFrom' | 'now' | 'delay'> {
  readonly holder: Holder;
  /** Stands between the buyer and its record. */
  readonly through?: (wallet: Shop['wallet']) => Shop['wallet'];
}

/** Where the record is by default: one folder for all of a user's calls, so that its budgets hold for all of them. */
function dataFolder(env: Env): string {
  if (env.PERCALL_DIR) return env.PERCALL_DIR;
  const home = env.HOME || env.USERPROFILE;
  return env.XDG_DATA_HOME ? join(env.XDG_DATA_HOME, 'percall') : join(home ?? '.', '.percall');
}

/** Reads a buyer's settings from the environment. Throws for an address that is no URL. */
export function settingsFrom(env: Env): BuyerSettings {
  return {
    dataDir: dataFolder(env),
    env,
    rpcUrl: env.RPC_URL || null,
    btcUsd: env.BTC_USD || null,
    discovery: env.DISCOVERY_URL ? new URL(env.DISCOVERY_URL) : null,
  };
}

/** This process among those that share a record. A process of another machine counts as alive until its lease ends. */
function ownHolder(): Holder {
  const machine = hostname();
  return {
    name: `${machine} ${process.pid} ${randomUUID()}`,
    isAlive(other) {
      const [host, pid] = other.split(' ');
      if (host !== machine) return true;
      try {
        process.kill(Number(pid), 0);
        return true;
      } catch (error) {
        return (error as NodeJS.ErrnoException).code === 'EPERM';
      }
    },
  };
}

/**
 * Opens a buyer over the record in its data folder, which is made where it is missing. Several may be open on one
 * folder,
 * in one process or in several. Throws when the folder or its database cannot be used.
 */
export function openBuyer(settings: BuyerSettings, given: Partial<Surroundings> = {}): Buyer {
  const now = given.now ?? (() => Math.floor(Date.now() / 1000));
  const holder = given.holder ?? ownHolder();
  const record = openRecord(settings.dataDir, now, holder);
  const wallet = given.through?.(record) ?? record;
  const shop: Shop = {
    settings,
    wallet,
    holder,
    ownRate: createOwnRate(settings.btcUsd, settings.env),
    sellerOf: given.sellerOf ?? sellerOf,
    payerFrom: given.payerFrom ?? payerFrom,
    now,
    delay: given.delay ?? ((ms) => sleep(ms)),
    channelFolder: settings.env.CHANNEL_DIR || join(settings.dataDir, 'channels'),
  };
  const { rpcUrl } = settings;
  return {
    price: (call, limits) => priceCall(call, limits, shop),
    pay: (call, limits) => payCall(call, limits, shop),
    budgets: { list: wallet.budgets.list, set: wallet.budgets.set },
    open: wallet.open,
    history: wallet.history,
    sweep: async () => (rpcUrl === null ? 0 : sweepExpired(wallet, rpcUrl)),
    drop: wallet.drop,
    unpin: wallet.unpin,
    async balance() {
      const key = rpcUrl === null ? null : buyerKey(settings.env);
      return key === null || rpcUrl === null ? null : usdcBalance(rpcUrl, addressIn(key));
    },
    close: wallet.close,
  };
}
