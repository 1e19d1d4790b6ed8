import type { Plant } from './plant.ts';

/** On the Lightning rail and in its facilitator. */
export const LIGHTNING_PLANTS: readonly Plant[] = [
  {
    name: 'a preimage is not checked',
    file: 'src/payment/lightning/proof.ts',
    find: '  if (unproven) return refused(unproven);',
    replace: "  if (unproven === 'invalid_exact_lnbtc_preimage_missing') return refused(unproven);",
    breaks: ['no answer without its full price', 'the ledger equals the chain'],
  },
  {
    name: 'a claim is not for once',
    file: 'src/store/lightning-claims.ts',
    find: "(part === 'known' || part === 'open' ? 'claimed' : part)",
    replace: "(part === 'known' || part === 'open' || part === 'duplicate' ? 'claimed' : part)",
    breaks: ['no payment is sold twice'],
  },
  {
    name: 'a facilitator’s claim may be taken over',
    file: 'src/store/lightning-claims.ts',
    find: ' AND lightning_claims.request_hash IS NULL\n     AND lightning_claims.pay_to <> excluded.pay_to`);',
    replace: ' AND lightning_claims.request_hash IS NULL`);',
    breaks: ['no payment is sold twice'],
  },
  {
    name: 'the node of a shared key is not asked',
    file: 'src/payment/lightning/redeem.ts',
    find: 'if (!shared || known?.grant?.answered) return null;',
    replace: 'if (known !== undefined) return null;',
    breaks: ['no answer without its full price'],
  },
  {
    name: 'any invoice of a shared key counts',
    file: 'src/payment/lightning/redeem.ts',
    find: "if (shared && !answered?.isSigned) throw new PaymentRefused('exact_lnbtc_payment_not_paid');",
    replace: "if (shared && !issuer) throw new PaymentRefused('exact_lnbtc_payment_not_paid');",
    breaks: ['the ledger equals the chain', 'no answer without its full price'],
  },
  {
    name: 'an invoice over another amount is offered',
    file: 'src/payment/lightning/issuer.ts',
    find: "if (invoice.amountMsat !== requested.amountMsat) return 'its amount is another';",
    replace: "if (invoice.amountMsat < requested.amountMsat) return 'its amount is another';",
    breaks: ['who paid is served'],
  },
  {
    name: 'a proof is for any request',
    file: 'src/payment/lightning/proof.ts',
    find: "if (Buffer.compare(requestHash, Buffer.from(terms.requestHash, 'hex')) !== 0)",
    replace: 'if (requestHash.length !== terms.requestHash.length / 2)',
    breaks: ['no payment is sold twice', 'no answer without its full price'],
  },
];
