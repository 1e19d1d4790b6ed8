import { readerOf, topicOf, word } from './abi.ts';
import {
  CALLS,
  type ChannelConfig,
  type ChannelTerms,
  COLLECTOR,
  CONFIG_BYTES,
  configWords,
  depositTerms,
  readConfig,
  readDeposit,
  SETTLEMENT,
} from './channel-terms.ts';
import type { CallResult, Env, Frame } from './frame.ts';
import { type Hex, keccak, signerOf, toHex } from './keys.ts';
import type { ChannelSlot, View } from './state.ts';
import { receiveCalldata, transferOut, USDC } from './token.ts';
import { askWallet } from './wallets.ts';

const topic = (signature: string): Hex => toHex(keccak(Buffer.from(signature)));
const CONFIG = '(address,address,address,address,address,uint40,bytes32)';

/** Topics of the contract's events. */
export const EVENTS = {
  created: topic(`ChannelCreated(bytes32,${CONFIG})`),
  closed: topic(`ChannelClosed(bytes32,${CONFIG})`),
  deposited: topic('Deposited(bytes32,address,uint128,uint128)'),
  claimed: topic('Claimed(bytes32,address,uint128,uint128)'),
  settled: topic('Settled(address,address,address,uint128)'),
  refunded: topic('Refunded(bytes32,address,uint128)'),
  withdrawInitiated: topic('WithdrawInitiated(bytes32,uint128,uint40)'),
  withdrawFinalized: topic('WithdrawFinalized(bytes32,address,uint128)'),
};

const ZERO: Hex = `0x${'0'.repeat(40)}`;
const DELAYS = { least: 900, most: 2_592_000 };
/** Gas of the contract's own parts, as measured on the embedded network's contract. */
const GAS = {
  read: 3_000,
  deposit: 20_000,
  batch: 20_000,
  row: 22_000,
  settle: 12_000,
  refund: 30_000,
  withdraw: 25_000,
};

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const NOTHING: ChannelSlot = { balance: 0n, totalClaimed: 0n };
export const channelOf = (view: View, id: Hex): ChannelSlot => view.get(`channel ${id}`) ?? NOTHING;

class Reverted extends Error {}
function require(holds: boolean, why: string): void {
  if (!holds) throw new Reverted(why);
}

interface Row {
  readonly config: ChannelConfig;
  readonly id: Hex;
  readonly max: bigint;
  readonly claimed: bigint;
  readonly signature: Buffer;
}

/** The scheme's settlement contract with its collector of deposits. `call` runs calls of other contracts. */
export function createSettlement(terms: ChannelTerms, call: (env: Env, frame: Frame) => CallResult) {
  function emit({ logs }: Env, kind: Hex, topics: readonly Hex[], words: string): void {
    logs.push({ address: SETTLEMENT, topics: [kind, ...topics], data: `0x${words}` });
  }

  function token(env: Env, frame: Frame, from: Hex, data: Hex): CallResult {
    const gas = Math.floor(((frame.gas - frame.used) * 63) / 64);
    const result = call(env, { from, to: USDC, data, gas, used: 0 });
    frame.used += result.gasUsed;
    return result;
  }

  function pay(env: Env, frame: Frame, to: Hex, units: bigint): void {
    require(token(env, frame, SETTLEMENT, transferOut(to, units)).ok, 'SafeERC20FailedOperation');
  }

  /** By key for an account without code, by ERC-1271 for one with code. */
  function isSignedBy(env: Env, frame: Frame, signer: Hex, digest: Buffer, signature: Buffer): boolean {
    const wallet = env.view.get(`code ${signer}`) ?? null;
    if (wallet === null) return signerOf(digest, signature) === signer;
    const { gasPrice, origin, relayer } = env;
    const asked = askWallet(wallet, { digest, signature, gas: frame.gas - frame.used, gasPrice, origin, relayer });
    frame.used += asked.gasUsed;
    return asked.valid === true;
  }

  function deposit(env: Env, frame: Frame): void {
    const read = readDeposit(frame.data);
    if (!read) throw new Reverted('no such call');
    const { config, collector, deposit: given } = read;
    const { payer, receiver, receiverAuthorizer, token: asset, withdrawDelay } = config;
    require(![payer, receiver, receiverAuthorizer, asset].includes(ZERO), 'InvalidChannel');
    require(withdrawDelay >= DELAYS.least && withdrawDelay <= DELAYS.most, 'WithdrawDelayOutOfRange');
    require(given.units > 0n, 'ZeroDeposit');
    require(collector === COLLECTOR && asset === USDC, 'DepositCollectionFailed');
    const id = terms.channelId(config);
    const { balance, totalClaimed } = channelOf(env.view, id);
    env.view.set(`channel ${id}`, { balance: balance + given.units, totalClaimed });
    frame.used += GAS.deposit;
    const authorized = receiveCalldata(depositTerms(id, config, given), given.signature);
    const collected = token(env, frame, COLLECTOR, authorized);
    require(collected.ok, collected.why);
    require(token(env, frame, COLLECTOR, transferOut(SETTLEMENT, given.units)).ok, 'SafeERC20FailedOperation');
    if (balance === 0n && totalClaimed === 0n) emit(env, EVENTS.created, [id], configWords(config));
    emit(env, EVENTS.deposited, [id, topicOf(frame.from)], word(given.units) + word(balance + given.units));
  }

  function rowsOf(args: ReturnType<typeof readerOf>): Row[] {
    const list = args.short(0) + 32;
    return Array.from({ length: args.short(args.short(0)) }, (_, at) => {
      const base = list + args.short(list + 32 * at);
      const config = readConfig(args, base);
      const after = base + CONFIG_BYTES;
      return {
        config,
        id: terms.channelId(config),
        max: args.number(after),
        claimed: args.number(after + 64),
        signature: Buffer.from(args.bytes(after + 32, base).slice(2), 'hex'),
      };
    });
  }

  function claim(env: Env, frame: Frame): void {
    const args = readerOf(frame.data.slice(10));
    const rows = rowsOf(args);
    const [first] = rows;
    if (!first) throw new Reverted('EmptyBatch');
    const authorizer = first.config.receiverAuthorizer;
    require(rows.every(({ config }) => config.receiverAuthorizer === authorizer), 'NotReceiverAuthorizer');
    frame.used += GAS.batch;
    const signature = Buffer.from(args.bytes(32).slice(2), 'hex');
    require(isSignedBy(env, frame, authorizer, terms.batchDigest(rows), signature), 'InvalidSignature');
    for (const row of rows) record(env, frame, row);
  }

  /** A row that records nothing new is passed over without a look at its signature. */
  function record(env: Env, frame: Frame, { config, id, max, claimed, signature }: Row): void {
    const { view } = env;
    const { balance, totalClaimed } = channelOf(view, id);
    frame.used += GAS.read;
    if (claimed <= totalClaimed) return;
    require(claimed <= max, 'ClaimExceedsCeiling');
    require(claimed <= balance, 'ClaimExceedsBalance');
    const digest = terms.voucherDigest(id, max);
    const { payer, payerAuthorizer, receiver } = config;
    const isValid =
      payerAuthorizer === ZERO
        ? isSignedBy(env, frame, payer, digest, signature)
        : signerOf(digest, signature) === payerAuthorizer;
    // Not the contract's: whatever else may make one row revert.
    require(isValid && view.get(`poisoned ${id}`) !== true, 'InvalidSignature');
    frame.used += GAS.row;
    view.set(`channel ${id}`, { balance, totalClaimed: claimed });
    const due = view.get(`receiver ${receiver}`) ?? { totalClaimed: 0n, totalSettled: 0n };
    view.set(`receiver ${receiver}`, { ...due, totalClaimed: due.totalClaimed + claimed - totalClaimed });
    emit(env, EVENTS.claimed, [id, topicOf(frame.from)], word(claimed - totalClaimed) + word(claimed));
  }

  function settle(env: Env, frame: Frame): void {
    const args = readerOf(frame.data.slice(10));
    const [receiver, asset] = [args.address(0), args.address(32)];
    frame.used += GAS.settle;
    const state = env.view.get(`receiver ${receiver}`);
    const due = state ? state.totalClaimed - state.totalSettled : 0n;
    if (!state || due === 0n || asset !== USDC) return;
    env.view.set(`receiver ${receiver}`, { ...state, totalSettled: state.totalClaimed });
    emit(env, EVENTS.settled, [topicOf(receiver), topicOf(asset), topicOf(frame.from)], word(due));
    pay(env, frame, receiver, due);
  }

  /** Takes money out of a channel towards its payer. */
  function payBack(env: Env, frame: Frame, config: ChannelConfig, id: Hex, units: bigint): void {
    const { balance, totalClaimed } = channelOf(env.view, id);
    const left = { balance: balance - units, totalClaimed };
    env.view.set(`channel ${id}`, left);
    if (left.balance === 0n && totalClaimed === 0n) emit(env, EVENTS.closed, [id], configWords(config));
    if (units > 0n) pay(env, frame, config.payer, units);
  }

  function refund(env: Env, frame: Frame): void {
    const args = readerOf(frame.data.slice(10));
    const config = readConfig(args, 0);
    const id = terms.channelId(config);
    const [units, nonce] = [args.number(CONFIG_BYTES), args.number(CONFIG_BYTES + 32)];
    const signature = Buffer.from(args.bytes(CONFIG_BYTES + 64).slice(2), 'hex');
    frame.used += GAS.refund;
    require(nonce === (env.view.get(`refunds ${id}`) ?? 0n), 'InvalidRefundNonce');
    const digest = terms.refundDigest(id, nonce, units);
    require(isSignedBy(env, frame, config.receiverAuthorizer, digest, signature), 'InvalidSignature');
    require(units !== 0n, 'ZeroRefund');
    env.view.set(`refunds ${id}`, nonce + 1n);
    const { balance, totalClaimed } = channelOf(env.view, id);
    const refunded = least(units, balance - totalClaimed);
    if (refunded === 0n) return;
    const pending = env.view.get(`withdrawal ${id}`) ?? null;
    const rest = pending && pending.amount > refunded ? { ...pending, amount: pending.amount - refunded } : null;
    env.view.set(`withdrawal ${id}`, rest);
    emit(env, EVENTS.refunded, [id, topicOf(frame.from)], word(refunded));
    payBack(env, frame, config, id, refunded);
  }

  const isPayer = ({ payer, payerAuthorizer }: ChannelConfig, sender: Hex): boolean =>
    sender === payer || (sender === payerAuthorizer && sender !== ZERO);

  function withdraw(env: Env, frame: Frame): void {
    const args = readerOf(frame.data.slice(10));
    const [config, amount] = [readConfig(args, 0), args.number(CONFIG_BYTES)];
    frame.used += GAS.withdraw;
    require(isPayer(config, frame.from), 'InvalidChannel');
    require(amount !== 0n, 'NothingToWithdraw');
    const id = terms.channelId(config);
    require((env.view.get(`withdrawal ${id}`) ?? null) === null, 'WithdrawalAlreadyPending');
    const { balance, totalClaimed } = channelOf(env.view, id);
    require(amount <= balance - totalClaimed, 'WithdrawAmountExceedsAvailable');
    env.view.set(`withdrawal ${id}`, { amount, initiatedAt: env.timestamp });
    emit(env, EVENTS.withdrawInitiated, [id], word(amount) + word(env.timestamp + config.withdrawDelay));
  }

  function finalize(env: Env, frame: Frame): void {
    const config = readConfig(readerOf(frame.data.slice(10)), 0);
    frame.used += GAS.withdraw;
    require(isPayer(config, frame.from), 'NotAuthorizedToFinalizeWithdraw');
    const id = terms.channelId(config);
    const pending = env.view.get(`withdrawal ${id}`) ?? null;
    if (pending === null) throw new Reverted('WithdrawalNotPending');
    require(env.timestamp >= pending.initiatedAt + config.withdrawDelay, 'WithdrawDelayNotElapsed');
    env.view.set(`withdrawal ${id}`, null);
    const { balance, totalClaimed } = channelOf(env.view, id);
    const amount = least(pending.amount, balance - totalClaimed);
    emit(env, EVENTS.withdrawFinalized, [id, topicOf(frame.from)], word(amount));
    payBack(env, frame, config, id, amount);
  }

  /** Several calls, each as this sender's own: all of them, or none. */
  function multicall(env: Env, frame: Frame): void {
    const args = readerOf(frame.data.slice(10));
    const list = args.short(0) + 32;
    for (let at = 0; at < args.short(args.short(0)); at++) {
      const part = { ...frame, data: args.bytes(list + 32 * at, list) };
      change(env, part);
      frame.used = part.used;
    }
  }

  const CHANGES: Readonly<Record<string, (env: Env, frame: Frame) => void>> = {
    [CALLS.deposit]: deposit,
    [CALLS.claim]: claim,
    [CALLS.settle]: settle,
    [CALLS.refund]: refund,
    [CALLS.withdraw]: withdraw,
    [CALLS.finalize]: finalize,
    [CALLS.multicall]: multicall,
  };

  function change(env: Env, frame: Frame): void {
    const made = CHANGES[frame.data.slice(2, 10)];
    if (!made) throw new Reverted('no such call');
    made(env, frame);
  }

  function run(env: Env, frame: Frame): string {
    const args = readerOf(frame.data.slice(10));
    switch (frame.data.slice(2, 10)) {
      case CALLS.channels: {
        const { balance, totalClaimed } = channelOf(env.view, args.hash(0));
        return word(balance) + word(totalClaimed);
      }
      case CALLS.withdrawals: {
        const { amount = 0n, initiatedAt = 0 } = env.view.get(`withdrawal ${args.hash(0)}`) ?? {};
        return word(amount) + word(initiatedAt);
      }
      case CALLS.refundNonce:
        return word(env.view.get(`refunds ${args.hash(0)}`) ?? 0n);
      case CALLS.channelId:
        return terms.channelId(readConfig(args, 0)).slice(2);
      default:
        change(env, frame);
        return '';
    }
  }

  return {
    call(env: Env, frame: Frame): CallResult {
      frame.used += GAS.read;
      try {
        return { ok: true, data: `0x${run(env, frame)}`, gasUsed: frame.used, why: '' };
      } catch (error) {
        if (!(error instanceof Reverted) && !(error instanceof RangeError)) throw error;
        return { ok: false, data: '0x', gasUsed: Math.min(frame.used, frame.gas), why: error.message };
      }
    },
  };
}
