import { fetch402 } from '@getalby/lightning-tools';

// Buys a call by L402 with a wallet behind PAYER_URL, for at most 20 sats. docs/paying.md explains it.

const { ORIGIN, PAYER_URL } = process.env;
if (!ORIGIN || !PAYER_URL) throw new Error('ORIGIN and PAYER_URL must be set');

const payInvoice = async (asked: { invoice: string }) => {
  const answer = await fetch(PAYER_URL, { method: 'POST', body: JSON.stringify(asked) });
  return (await answer.json()) as { preimage: string };
};
const wallet = { payInvoice };
const answer = await fetch402(`${ORIGIN}/v1/lightning/fees/estimate`, {}, { wallet, maxAmount: 20 });
console.log(await answer.json());
