import { z } from 'zod';
import { key, needed, optional, type Rule, type Settings, table } from './table.ts';
import { address, baseUrl, decimal, lower, oneOf, onOff, privateKey, scaled, token, usdc, whole } from './values.ts';

// By which rails and settlers is paid in USDC, at which gas, under which limits, and in which protocols.

/** Circle's Facilitator Service, by NETWORK. */
const CIRCLE: Record<string, string> = {
  arc: 'https://api.circle.com/v1/facilitator/x402',
  'arc-testnet': 'https://api-sandbox.circle.com/v1/facilitator/x402',
};

const relayerKey: Rule = ({ SETTLER, RELAYER_PRIVATE_KEY }) =>
  SETTLER !== 'facilitator' && RELAYER_PRIVATE_KEY === undefined && 'RELAYER_PRIVATE_KEY is missing';
const isOther: Rule = ({ SETTLER, REMOTE_FACILITATOR_MODE: mode, NETWORK = '' }) =>
  SETTLER === 'facilitator' && !(mode === 'circle' && CIRCLE[NETWORK]) && 'SETTLER=facilitator needs it';
const PROOFS = 'REMOTE_FACILITATOR_TOKEN or, for a trial, REMOTE_FACILITATOR_SELLER_KEY';
const oneProof: Rule = ({ SETTLER, REMOTE_FACILITATOR_MODE: mode, ...given }) => {
  const isOne = !given.REMOTE_FACILITATOR_TOKEN !== !given.REMOTE_FACILITATOR_SELLER_KEY;
  const why = `${PROOFS} must be set: exactly one of them (REMOTE_FACILITATOR_MODE=circle)`;
  return SETTLER === 'facilitator' && mode === 'circle' && !isOne && why;
};
const UNUSED = 'REMOTE_FACILITATOR_SELLER_KEY is set (only REMOTE_FACILITATOR_MODE=circle knows what it is for)';
const unused: Rule = ({ SETTLER, REMOTE_FACILITATOR_MODE: mode, REMOTE_FACILITATOR_SELLER_KEY: own }) =>
  SETTLER === 'facilitator' && mode !== 'circle' && own !== undefined && UNUSED;
const RULES = [relayerKey, ...needed(['REMOTE_FACILITATOR_URL'], isOther), oneProof, unused];

export const SETTLING = table('Who settles USDC payments', RULES, {
  settler: key('SETTLER', oneOf('relayer', 'facilitator'), 'relayer')`relayer: the service's own account submits
    transactions and pays their gas. facilitator: another operator's x402 facilitator does.`,
  remote: {
    mode: key('REMOTE_FACILITATOR_MODE', oneOf('x402', 'circle'), 'x402')`circle: Circle's Facilitator Service, whose
      settlements may be pending for a while. x402: any other of x402 version 2.`,
    url: optional('REMOTE_FACILITATOR_URL', baseUrl)`The facilitator's base URL, before /settle and /supported. Default
      with the mode circle on arc and arc-testnet: Circle's.`,
    token: optional('REMOTE_FACILITATOR_TOKEN', token)`Sent to it as a bearer token; for Circle its API key.
      Empty: none is sent.`,
    sellerKey: optional('REMOTE_FACILITATOR_SELLER_KEY', privateKey)`Private key of SELLER_ADDRESS, for Circle's trial
      without an API key. It holds the sales: use it on the test network only.`,
    timeoutMs: key('REMOTE_FACILITATOR_TIMEOUT_MS', whole(1, 600_000), '15000')`For one request to it. A settlement
      without an answer by then is unknown until the chain shows its outcome.`,
  },
  exact: key('EXACT', onOff, 'on')`off: the plain rail (a transfer of its own for each call, whose gas the seller pays)
    is not offered. Then CHANNELS or GATEWAY must sell each route.`,
  exactFrom: key('EXACT_FROM_USD', usdc, '0')`The plain rail is offered on routes of at least this price, in USD.
    Cheaper routes are left to channels and the Gateway.`,
});

/** A third party's facilitator, which settles instead of our relayer; null: our own relayer does. */
export function remoteOf(network: string, { settler, remote }: Settings<typeof SETTLING>) {
  return settler === 'facilitator' ? { ...remote, url: remote.url ?? CIRCLE[network] ?? '' } : null;
}

/** Wei of native USDC. */
const wei = decimal('a decimal number of USDC', 6, 18);
/** What a day without income may cost: the gas of about 2,000 lone settlements at 20 gwei. */
const DEFAULT_DAILY_GAS = '5';
/** Null is no limit. `plusIncome`: the day's income over the relayer may be spent too. */
const dailyGas = z.union(
  [
    z.literal('off').transform(() => null),
    z.literal('').transform(() => ({ wei: wei.parse(DEFAULT_DAILY_GAS), plusIncome: true })),
    wei.transform((budget) => ({ wei: budget, plusIncome: false })),
  ],
  'a decimal number of USDC, or off',
);
const weiOrNone = wei.transform((budget) => budget || null);

export const RELAYER = table('Relayer: our own settlement of USDC payments', [], {
  gatherMs: key('RELAYER_GATHER_MS', whole(0, 5000), '100')`The batch window: while a transaction is in flight,
    payments wait at most this long to share the next one.`,
  blockSharePercent: key('RELAYER_BLOCK_SHARE', whole(1, 100), '60')`Percent of a block's gas for one transaction.`,
  dailyGas: key('RELAYER_DAILY_GAS_USDC', dailyGas, '')`The relayer's gas budget per UTC day, in USDC. Beyond it, plain
    payments and deposits are refused before the call runs; what is owed already is still sent. Empty: 5, plus what the
    day's payments over the relayer brought. off: no limit. 0 is not off: it allows no gas at all.`,
  dailyFailuresWei: key('RELAYER_DAILY_FAILURES_USDC', weiOrNone, '1')`The gas budget per UTC day for transactions that
    settle nothing, in USDC. Beyond it, nothing is sold to payers that are contracts. 0 is off.`,
});

// Circle's Gateway: payments from deposits, settled in batches.

/** Circle's Gateway, by NETWORK: the API and the contract. */
const GATEWAYS: Record<string, readonly string[]> = {
  arc: ['https://gateway-api.circle.com', '0x77777777Dcc4d5A8B6E418Fd04D8997ef11000eE'],
  'arc-testnet': ['https://gateway-api-testnet.circle.com', '0x0077777d7EBA4688BDeF3E311b846F25870A19B9'],
};
const onOtherNetworks = needed(
  ['GATEWAY_URL', 'GATEWAY_WALLET_ADDRESS'],
  ({ GATEWAY, NETWORK = '' }) => GATEWAY === 'on' && !GATEWAYS[NETWORK] && 'GATEWAY=on on this network needs it',
);

export const GATEWAY = table('Circle’s Gateway', onOtherNetworks, {
  isOn: key('GATEWAY', onOff, 'off')`on: offers Circle's Gateway as a second way to pay: from deposits, in batches,
    without gas. The sales arrive as a Gateway balance.`,
  url: optional('GATEWAY_URL', baseUrl)`Its base URL. Default on arc and arc-testnet: Circle's.`,
  wallet: optional('GATEWAY_WALLET_ADDRESS', address)`The Gateway Wallet contract, for which payers sign; known for arc
    and arc-testnet.`,
  token: optional('GATEWAY_TOKEN', token)`A bearer token. The public service needs none.`,
  timeoutMs: key('GATEWAY_TIMEOUT_MS', whole(1, 600_000), '10000')`For one request to it.`,
});

/** Null: off. `network` is the value of NETWORK. */
export function gatewayOf(network: string, { isOn, url, wallet, token, timeoutMs }: Settings<typeof GATEWAY>) {
  const [ownUrl = '', ownWallet = ''] = GATEWAYS[network] ?? [];
  return isOn ? { url: url ?? ownUrl, wallet: lower(wallet ?? ownWallet), token, timeoutMs } : null;
}

// Payment channels: a buyer deposits once and signs a voucher for each call.

const signer: Rule = ({ CHANNELS }) => CHANNELS === 'on' && 'CHANNELS=on needs a key that signs claims and refunds';
/** Claims and deposits are our own transactions, also where a facilitator settles the other payments. */
const sender: Rule = ({ CHANNELS, SETTLER }) =>
  CHANNELS === 'on' && SETTLER === 'facilitator' && 'CHANNELS=on needs it to send deposits and claims';
const claimsWin: Rule = (given) => {
  const [delay, age] = [CHANNELS.members.withdrawDelaySeconds, CHANNELS.members.claimAfterSeconds];
  const most = Number(given[delay.name] ?? delay.fallback);
  const isLate = given.CHANNELS === 'on' && Number(given[age.name] ?? age.fallback) >= most / 2;
  return isLate && `${age.name} must be less than half of ${delay.name} (${most}): a claim must beat a withdrawal`;
};
const NEEDS = [...needed(['CHANNELS_AUTHORIZER_KEY'], signer), ...needed(['RELAYER_PRIVATE_KEY'], sender), claimsWin];
/** In seconds; the contract takes 15 minutes to 30 days. */
const MOST_DELAY = 2_592_000;

export const CHANNELS = table('Payment channels', NEEDS, {
  withdrawDelaySeconds: key('CHANNELS_WITHDRAW_DELAY_SECONDS', whole(900, MOST_DELAY), '86400')`From a payer's wish to
    withdraw without us to the withdrawal. It is part of every channel. Vouchers are claimed before its end.`,
  minDeposit: key('CHANNELS_MIN_DEPOSIT_USDC', usdc, '1')`The least deposit, in USDC. A stock client deposits exactly
    this. A low one means many deposits, and each costs gas.`,
  depositsADay: {
    payer: key('CHANNELS_PAYER_DEPOSITS_PER_DAY', whole(), '10')`Deposits a day of one payer, as far as their money was
      not spent; 0 is off. Counted in each process. A deposit costs gas of some 0.003 USDC, and its payer may take the
      money back and pay it in again. Never counted are top-ups of a channel of which calls have used half of what was
      put in and not withdrawn.`,
    client: key('CHANNELS_CLIENT_DEPOSITS_PER_DAY', whole(), '40')`The same for one client (see Limits).`,
  },
  claimFrom: key('CHANNELS_CLAIM_FROM_USDC', usdc, '1')`A channel is claimed once its unclaimed charges reach this.`,
  claimAfterSeconds: key('CHANNELS_CLAIM_AFTER_SECONDS', whole(1, MOST_DELAY), '21600')`Charges that wait for so long
    are claimed, however small: less than half of CHANNELS_WITHDRAW_DELAY_SECONDS.`,
});

// Protocols, limits and replies.

const challengeSecret = z.string().min(32, 'at least 32 characters');

export const PROTOCOLS = table('MPP, and the secret of L402 and MPP', [], {
  mpp: key('MPP', onOff, 'off')`on: sells the USDC routes under /v1/mpp too, to clients of MPP's method evm.`,
  secret: optional('MPP_SECRET', challengeSecret)`Signs the challenges of L402 and MPP. Without it, a random key is
    made once and kept in the ledger, the same for all instances.`,
  previousSecret: optional('MPP_SECRET_PREVIOUS', challengeSecret)`The secret before the last change. What it signed
    over Lightning is still accepted: set it for two weeks after a change. A proof may come for the first time 7 days
    after its invoice, and its answer can be fetched for 7 days more. A challenge under /v1/mpp lives for 10 minutes.
    There it is accepted for an hour after a start.`,
});

const WHO = 'A client is an IPv4 address or an IPv6 /64; an IPv6 /48 has four times as much';
export const LIMITS = table(`Limits: 0 is off. ${WHO}`, [], {
  connections: {
    perClient: key('CONNECTIONS_PER_CLIENT', whole(), '256')`Connections of one client, in each process. One more gets
    503 and is closed. Loopback and TRUSTED_PROXIES are not limited. One client has at most an eighth of
    MAX_CONNECTIONS, an IPv6 /48 a quarter, and an eighth (at most 32) is kept for loopback and TRUSTED_PROXIES.`,
    most: optional('MAX_CONNECTIONS', whole())`The same for all clients of a process. Default: the hard limit of open
    files (ulimit -Hn) less 512, at least half of it; 1024 is assumed without /proc.`,
  },
  rateLimits: {
    free: key('RATE_LIMIT_FREE_PER_MINUTE', whole(), '300')`Requests of one client on the free routes.`,
    priced: key('RATE_LIMIT_PRICED_PER_MINUTE', whole(), '600')`On the priced routes, the unpaid 402 included.`,
  },
  maxOpenPayments: key('PAYER_MAX_OPEN', whole(), '32')`Payments that one payer may have open at the same time.`,
  failureLimits: {
    payer: key('PAYER_FAILURES_PER_MINUTE', whole(), '20')`Uncharged failures of one payer. It bounds unpaid work.`,
    client: key('CLIENT_FAILURES_PER_MINUTE', whole(), '60')`Of one client, whatever payers it names.`,
    clientSettlements: key('CLIENT_FAILED_SETTLEMENTS_PER_DAY', whole(), '3')`Settlements that were sent and moved
    nothing, of one payer or of one client. Beyond it the payer is refused for the rest of the day, and the client
    may pay only from payers that have paid before.`,
  },
  unknownLimits: {
    payer: key('PAYER_MAX_UNKNOWN', whole(), '4')`Payments with an unknown outcome that one payer may have. At the
    limit its new purchases get 429; its earlier payments are still answered.`,
    client: key('CLIENT_MAX_UNKNOWN', whole(), '12')`The same for one client.`,
  },
});

export const REPLIES = table('Replies that were paid for', [], {
  storeBytes: key('REPLY_STORE_MB', scaled(1024 * 1024, 1), '256')`The quota for replies that are kept for
    redelivery, in MiB, for each rail. When it is full, calls are refused before they are charged. Instances that share
    a ledger divide it among those that live. Unpaid Lightning offers use at most half of it. A fifth of that half is
    reserved for clients that have paid within the hour. Of the rest, any other client has a 24th, at least 1 MiB.`,
  keepSeconds: key('REDELIVERY_SECONDS', whole(), '900')`How long a paid reply can be fetched again with the same
    payment, in seconds after its first delivery. One that was never delivered is kept for 7 days, while such replies
    fill at most half of the store.`,
  maxDeliveries: key('REDELIVERY_MAX', whole(), '5')`How many times a paid reply can be fetched again.`,
});
