import { type Given, onOff, privateKey, type Read, usdc, whole } from './table.ts';

// Payment channels: a buyer deposits once and signs a voucher for each call.

/** Defaults in seconds: a withdrawal takes a day, a charge waits six hours at most. */
const WITHDRAW_DELAY = 86_400;
const CLAIM_AFTER = 21_600;

export const channelsEnvironment = {
  CHANNELS: onOff('off'),
  CHANNELS_AUTHORIZER_KEY: privateKey.optional(),
  // The contract takes 15 minutes to 30 days.
  CHANNELS_WITHDRAW_DELAY_SECONDS: whole(WITHDRAW_DELAY, 900, 2_592_000),
  CHANNELS_MIN_DEPOSIT_USDC: usdc('1'),
  CHANNELS_PAYER_DEPOSITS_PER_DAY: whole(10),
  CHANNELS_CLIENT_DEPOSITS_PER_DAY: whole(40),
  CHANNELS_CLAIM_FROM_USDC: usdc('1'),
  CHANNELS_CLAIM_AFTER_SECONDS: whole(CLAIM_AFTER, 1, 2_592_000),
};

/** Claims and deposits are our own transactions, also where a facilitator settles the other payments. */
export function channelsProblems(given: Given): string[] {
  if (given.CHANNELS !== 'on') return [];
  const problems: string[] = [];
  if (given.CHANNELS_AUTHORIZER_KEY === undefined)
    problems.push('CHANNELS_AUTHORIZER_KEY is missing (CHANNELS=on needs a key that signs claims and refunds)');
  if (given.SETTLER === 'facilitator' && given.RELAYER_PRIVATE_KEY === undefined)
    problems.push('RELAYER_PRIVATE_KEY is missing (CHANNELS=on needs it to send deposits and claims)');
  const delay = Number(given.CHANNELS_WITHDRAW_DELAY_SECONDS ?? WITHDRAW_DELAY);
  if (Number(given.CHANNELS_CLAIM_AFTER_SECONDS ?? CLAIM_AFTER) >= delay / 2)
    problems.push(
      `CHANNELS_CLAIM_AFTER_SECONDS must be less than half of CHANNELS_WITHDRAW_DELAY_SECONDS (${delay}): ` +
        'a claim must beat a withdrawal',
    );
  return problems;
}

/** Null: off. `channelsProblems` has found no problem before. */
export function assembleChannels(env: Read<typeof channelsEnvironment>) {
  if (env.CHANNELS !== 'on') return null;
  return {
    /** Signs claims and refunds for the seller and needs no money. Its address is part of each channel's id. */
    authorizerKey: (env.CHANNELS_AUTHORIZER_KEY ?? '0x') as `0x${string}`,
    /** From a payer's request to withdraw to the withdrawal. Part of each channel's id. */
    withdrawDelaySeconds: env.CHANNELS_WITHDRAW_DELAY_SECONDS,
    /** The least deposit, in USDC base units. */
    minDeposit: env.CHANNELS_MIN_DEPOSIT_USDC,
    /** Deposits of a payer and of a client whose money is not spent; 0 is off. */
    depositsADay: { payer: env.CHANNELS_PAYER_DEPOSITS_PER_DAY, client: env.CHANNELS_CLIENT_DEPOSITS_PER_DAY },
    /** Unclaimed charges are claimed once they reach this amount, in USDC base units. */
    claimFrom: env.CHANNELS_CLAIM_FROM_USDC,
    /** Unclaimed charges are claimed once they wait for so long, however small. */
    claimAfterSeconds: env.CHANNELS_CLAIM_AFTER_SECONDS,
  };
}

export type ChannelsConfig = Readonly<NonNullable<ReturnType<typeof assembleChannels>>>;
