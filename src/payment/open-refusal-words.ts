import { LNBTC_REFUSALS } from './lightning/proof.ts';
import { RAILS } from './open-rails.ts';
import { type RefusalWords, refusalWords } from './refusal.ts';
import { OWN_REFUSALS } from './refusal-sentences.ts';
import { EVM_REFUSALS } from './usdc/authorization.ts';

const ofRails = RAILS.map(({ info }) => info.refusals ?? {});

/** The words for every reason for which this service refuses a payment. */
export const wordsOfRefusal: RefusalWords = refusalWords([OWN_REFUSALS, EVM_REFUSALS, LNBTC_REFUSALS, ...ofRails]);
