import { afterEach, expect, test } from 'vitest';
import { readText } from '../../support/documents.ts';
import { type OpenFacilitator, openFacilitator } from '../../support/lightning/facilitator.ts';

const { requestBody, responses } = JSON.parse(readText('openapi/openapi.json')).paths['/facilitator/settle'].post;
const asked = requestBody.content['application/json'].example;
const answered = responses[200].content['application/json'].schema.examples?.[0];
/** When the invoice of the example was made: Unix seconds. */
const MADE = 1_700_000_000;

let opened: OpenFacilitator;
afterEach(() => opened?.close());

test('the document’s example of a proof is claimed, once, with the answer that it shows', async () => {
  opened = openFacilitator({ startMs: MADE * 1000 });
  expect(await opened.facilitator.settle(asked, 'a')).toEqual({ status: 200, body: answered });
  expect((await opened.facilitator.settle(asked, 'a')).body).toMatchObject({ errorReason: 'duplicate_settlement' });
});

test('and is worth nothing today', async () => {
  opened = openFacilitator({ startMs: Date.now() });
  const { body } = await opened.facilitator.settle(asked, 'a');
  expect(body).toMatchObject({ success: false, errorReason: 'invalid_exact_lnbtc_invoice_expired' });
});
