import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { answerOf } from '../../../scripts/clients/client.ts';
import { CLIENTS } from '../../../scripts/clients/clients.ts';
import { judgeClient, type Outcome } from '../../../scripts/clients/judge.ts';
import { openShop, type Shop } from '../../../scripts/clients/shop.ts';
import { renderTable } from '../../../scripts/clients/table.ts';
import { readText } from '../../support/documents.ts';

/** One client of each library; the others take as long again. */
const CHEAP = [
  '@x402/fetch',
  'mppx, `evm` with `authorization`',
  'Alby, fetch402',
  'l402-requests',
  '@modelcontextprotocol/sdk with @x402/core',
];
const wanted = CLIENTS.filter(({ name }) => process.env.SLOW || CHEAP.includes(name));

/** What differs in each run: the start of an identifier. */
const plain = (line: string) => line.replaceAll(/ (?:0x)?[0-9a-f-]{8,12}…/g, ' ID…').trim();
const documented = readText('docs/clients.md').split('\n').map(plain);

let shop: Shop;
beforeAll(async () => {
  shop = await openShop();
}, 60_000);
afterAll(() => shop?.stop());

describe('the table of clients in docs/clients.md', () => {
  test('has every client of the script', () => {
    for (const { name } of CLIENTS)
      expect(
        documented.filter((line) => line.startsWith(`| ${name}`)),
        name,
      ).toHaveLength(1);
  });

  test.each(wanted.map((client) => [client.name, client] as const))(
    'is true for %s',
    async (_name, client) => {
      const outcomes: Outcome[] = await judgeClient(client, shop);
      expect(outcomes.filter(({ isLost }) => isLost)).toEqual([]);
      const rows = renderTable(outcomes).split('\n').slice(2).map(plain);
      const at = documented.indexOf(rows[0] ?? '');
      expect(documented.slice(at, at + rows.length), renderTable(outcomes)).toEqual(rows);
    },
    60_000,
  );

  test('counts an answer as bought only when the money has moved', async () => {
    const liar = {
      ...{ name: 'a client that makes its answer up', package: 'none' },
      buy: async () => ({ status: 200, headers: new Headers(), body: '{"gas":1}' }),
    };
    const [outcome] = await judgeClient(liar, shop, ['/v1/paid']);
    expect(outcome).toMatchObject({ isBought: false, isLost: false });
  });

  test('shows a payment without evidence as lost, and goes on with the next surface', async () => {
    const spender = {
      ...{ name: 'a client that pays two invoices for one answer', package: 'none' },
      buy: async ({ url, wallet }: Parameters<(typeof CLIENTS)[number]['buy']>[0]) => {
        const bought = async (of: string) => {
          const asked = await fetch(of);
          const line = asked.headers.get('www-authenticate') ?? '';
          const [, macaroon = '', invoice = ''] = /macaroon="([^"]+)", invoice="([^"]+)"/.exec(line) ?? [];
          const { preimage } = await wallet.payInvoice({ invoice });
          return fetch(of, { headers: { authorization: `L402 ${macaroon}:${preimage}` } });
        };
        await bought(`${url}1`);
        return answerOf(await bought(url));
      },
    };
    const outcomes = await judgeClient(spender, shop, ['/v1/lightning', '/v1/paid']);
    expect(outcomes).toMatchObject([
      {
        ...{ isBought: false, isLost: true },
        text: 'PAID, NO EVIDENCE: a client has paid two invoices for one call',
      },
      { isBought: false, isLost: false },
    ]);
  });

  test('shows a payment that brought no answer as lost', async () => {
    const forgetful = {
      ...{ name: 'a client that forgets what it has paid for', package: 'none' },
      buy: async ({ url, wallet }: Parameters<(typeof CLIENTS)[number]['buy']>[0]) => {
        const asked = await fetch(url);
        const [, invoice = ''] = /invoice="([^"]+)"/.exec(asked.headers.get('www-authenticate') ?? '') ?? [];
        await wallet.payInvoice({ invoice });
        throw new Error('forgotten');
      },
    };
    const [outcome] = await judgeClient(forgetful, shop, ['/v1/lightning']);
    expect(outcome).toMatchObject({ isBought: false, isLost: true, text: 'PAID, NO ANSWER: forgotten' });
  });
});
