import { WORLD } from '../engine/owner.ts';
import type { Handlers, MoveOf, Trap } from '../moves/move.ts';
import { depositCall, depositTerms, SETTLEMENT } from '../world/chain/channel-terms.ts';
import { type Account, type Hex, signDigest } from '../world/chain/keys.ts';
import { balanceOf, moveWei, type View } from '../world/chain/state.ts';
import { cancelCalldata, cancelDigest, transferCalldata, transferDigest, USDC } from '../world/chain/token.ts';
import { signTransaction } from '../world/chain/transactions.ts';
import { GATEWAY_WALLET } from '../world/gateway.ts';
import type { Handing } from '../world/handings.ts';
import { HONEST_WALLET, type Payer } from '../world/payers.ts';
import type { World } from '../world/world.ts';
import type { Adversary, Sale } from './adversary.ts';
import type { ChannelPayers } from './channel-payers.ts';

const GWEI = 1_000_000_000n;

interface Armed {
  readonly payer: Payer;
  readonly trap: Trap;
  readonly backMs: number | null;
}

/** A call of a contract by one of the world's own accounts, with its tip beyond the base fee. */
export interface OwnCall {
  readonly to: Hex;
  readonly data: Hex;
  readonly tipGwei: number;
}

/** Sends a transaction of an account of the world. */
export function sendFrom({ chain }: World, account: Account, { to, data, tipGwei }: OwnCall): void {
  const head = chain.head();
  const waiting = chain.pending().filter(({ from }) => from === account.address).length;
  const nonce = (chain.viewAt(head).get(`nonce ${account.address}`) ?? 0) + waiting;
  const tip = BigInt(tipGwei) * GWEI + 1n;
  const call = { nonce, tip, maxFee: 4n * chain.feeAt(head) + tip, gas: 400_000, to, value: 0n, data };
  chain.submit(signTransaction(account, chain.chainId, call));
}

/** What the adversary does on the chain itself: with an account of his own, and with what belongs to his payers. */
export function createOutsider(world: World, adversary: Adversary, channels: ChannelPayers) {
  const { chain, accounts, payers, scheduler, handings, gateway } = world;
  const traps: Armed[] = [];
  const send = (data: Hex, tipGwei: number): void => sendFrom(world, accounts.outsider, { to: USDC, data, tipGwei });

  const sendOf = ({ authorization }: Pick<Sale, 'authorization'>, tipGwei: number): void =>
    send(transferCalldata(authorization.terms, authorization.signature), tipGwei);

  const cancellation = (sale: Sale): Hex =>
    cancelCalldata(sale.payer.address, sale.authorization.terms.nonce, adversary.cancellation(sale));

  function moveAway({ address }: Payer, backMs: number | null): void {
    let moved = 0n;
    chain.change((view) => {
      moved = balanceOf(view, address);
      moveWei(view, address, accounts.elsewhere.address, moved);
    });
    if (backMs === null) return;
    const bring = (view: View) => void moveWei(view, accounts.elsewhere.address, address, moved);
    scheduler.after(backMs, WORLD, 'the balance is back', () => chain.change(bring));
  }

  /** What each trap does; `sale` is what the service has let out. */
  const springs: Readonly<Record<Trap, (armed: Armed, sale: Sale | undefined) => unknown>> = {
    'moves the balance': ({ payer, backMs }) => moveAway(payer, backMs),
    'grows code': ({ payer }) => program({ payer: payer.name, turnsWhen: 'always', turnsTo: 'no', trusting: true }),
    'turns the wallet': ({ payer }) =>
      program({ payer: payer.name, turnsWhen: 'always', turnsTo: 'burns some, then no', trusting: true }),
    cancels: (_armed, sale) => sale && send(cancellation(sale), 9),
    'spends elsewhere': (_armed, sale) => sale && sendOf({ authorization: adversary.elsewhere(sale, 'usdc') }, 9),
    'is sent by a third party': (_armed, sale) => sale && sendOf(sale, 9),
    // What is no deposit has no channel: it is sent as it is.
    'is sent past its channel': (_armed, sale) => sale && sendOf(sale, 9),
  };

  /** The service has just let an authorization out: an outsider that waits for this payer acts before it is mined. */
  function onHanding({ rail, terms }: Handing): void {
    const at = traps.findIndex(({ payer }) => payer.address === terms.from);
    const [armed] = at < 0 ? [] : traps.splice(at, 1);
    if (!armed) return;
    const sale = [...adversary.sales.values()].find(({ authorization }) => authorization.terms.nonce === terms.nonce);
    if (rail === 'channels') springDeposit(armed, terms.nonce);
    else springs[armed.trap](armed, sale);
  }

  /** The same for a deposit: it is cancelled, or sent by a third party, who can leave its money with the collector where the payer has signed for that too. */
  function springDeposit(armed: Armed, nonce: Hex): void {
    const found = channels.byNonce(nonce);
    if (!found) return;
    const { channel, deposit } = found;
    const { address, account } = channel.payer;
    if (armed.trap === 'cancels')
      send(cancelCalldata(address, nonce, signDigest(cancelDigest(chain.token.domain, address, nonce), account)), 9);
    else if (armed.trap === 'is sent by a third party')
      sendFrom(world, accounts.outsider, { to: SETTLEMENT, data: depositCall(channel.config, deposit), tipGwei: 9 });
    else if (armed.trap === 'is sent past its channel') {
      const terms = depositTerms(channel.channelId, channel.config, deposit);
      send(transferCalldata(terms, signDigest(transferDigest(chain.token.domain, terms), account)), 9);
    } else springs[armed.trap](armed, undefined);
  }
  handings.listen(onHanding);

  function program({
    payer: name,
    turnsWhen,
    turnsTo,
    trusting,
  }: Pick<MoveOf<'program'>, 'payer' | 'turnsWhen' | 'turnsTo' | 'trusting'>): void {
    const { address, account } = payers.get(name);
    chain.change((view) =>
      view.set(`code ${address}`, { owner: trusting ? null : account.address, turnsWhen, turnsTo }),
    );
  }

  /** Does something with a payment that the adversary holds. */
  const withSale =
    <M extends { readonly of: string }>(act: (sale: Sale, move: M) => void) =>
    (move: M): void => {
      const sale = adversary.sales.get(move.of);
      if (sale) act(sale, move);
    };

  function shedCode({ payer }: MoveOf<'shed code'>): void {
    const { address, isWallet, account } = payers.get(payer);
    const honest = isWallet ? { owner: account.address, ...HONEST_WALLET } : null;
    chain.change((view) => view.set(`code ${address}`, honest));
  }

  function handOver(sale: Sale, { to }: MoveOf<'hand over'>): void {
    if (sale.authorization.rail !== 'gateway') return;
    const { terms, signature } = to === 'elsewhere' ? adversary.elsewhere(sale, 'gateway') : sale.authorization;
    const extra = { verifyingContract: GATEWAY_WALLET };
    const made = { payTo: terms.to, amount: terms.value, network: gateway.network, extra, hasResource: true };
    gateway.settle({ terms, signature, ...made });
  }

  const handlers: Handlers = {
    program,
    'move balance': ({ payer, backMs }) => moveAway(payers.get(payer), backMs),
    'shed code': shedCode,
    trap: ({ payer, trap, backMs }) => traps.push({ payer: payers.get(payer), trap, backMs }),
    cancel: withSale((sale, { tipGwei }) => send(cancellation(sale), tipGwei)),
    'spend elsewhere': withSale((sale, { tipGwei }) =>
      sendOf({ authorization: adversary.elsewhere(sale, 'usdc') }, tipGwei),
    ),
    'third party sends': withSale((sale, { tipGwei }) => {
      if (sale.authorization.rail === 'usdc') sendOf(sale, tipGwei);
    }),
    'hand over': withSale(handOver),
  };
  return { handlers };
}
