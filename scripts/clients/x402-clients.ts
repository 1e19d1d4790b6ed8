import { GatewayClient } from '@circle-fin/x402-batching/client';
import { wrapAxiosWithPayment } from '@x402/axios';
import { InMemoryClientChannelStorage } from '@x402/evm/batch-settlement/client';
import { wrapFetchWithPayment } from '@x402/fetch';
import axios from 'axios';
import { createChannelClient } from '../../cli/ways/channel.ts';
import { createStockClient } from '../lib/stock-client.ts';
import { answerOf, type Client, termsOf } from './client.ts';

const MAX_DEPOSIT = 1_000_000n;

const x402Fetch: Client = {
  name: '@x402/fetch',
  package: '@x402/fetch',
  buy: async (errand) =>
    answerOf(await wrapFetchWithPayment(fetch, createStockClient(termsOf(errand)))(errand.url, errand.init)),
};

const x402Axios: Client = {
  name: '@x402/axios',
  package: '@x402/axios',
  async buy(errand) {
    // It takes the client of its own core, of which only the type is another version's.
    const client = createStockClient(termsOf(errand)) as unknown as Parameters<typeof wrapAxiosWithPayment>[1];
    const { method = 'GET', headers, body } = errand.init;
    const paying = wrapAxiosWithPayment(axios.create({ validateStatus: (status) => status < 400 }), client);
    const given = { url: errand.url, method, headers: headers as Record<string, string>, ...(body && { data: body }) };
    const answer = await paying.request({ ...given, responseType: 'text', transformResponse: (text) => text });
    return { status: answer.status, headers: new Headers(answer.headers as Record<string, string>), body: answer.data };
  },
};

const gateway: Client = {
  name: '@circle-fin/x402-batching, GatewayClient',
  package: '@circle-fin/x402-batching',
  async buy({ network, wallet, url, init }) {
    const seen: Response[] = [];
    const client = new GatewayClient({ chain: 'arc', privateKey: wallet.account.privateKey, rpcUrl: network.rpcUrl });
    client.onPaymentResponse(async ({ settleResponse }) => {
      const encoded = Buffer.from(JSON.stringify(settleResponse ?? {})).toString('base64');
      seen.push(new Response(null, { headers: { 'payment-response': encoded } }));
    });
    const { method = 'GET', headers, body } = init;
    // It names the content type itself.
    const { accept } = (headers ?? {}) as { accept?: string };
    const options = {
      method: method as 'GET',
      ...(accept && { headers: { accept } }),
      ...(body && { body: String(body) }),
    };
    const { status, data } = await client.pay(url, options);
    return { status, headers: seen.at(-1)?.headers ?? new Headers(), body: JSON.stringify(data) };
  },
};

const channel: Client = {
  name: '@x402/evm, payment channel',
  package: '@x402/evm',
  async buy(errand) {
    const terms = { ...termsOf(errand), maxDeposit: MAX_DEPOSIT, rpcUrl: errand.network.rpcUrl };
    const { client } = createChannelClient({ ...terms, storage: new InMemoryClientChannelStorage() });
    return answerOf(await wrapFetchWithPayment(fetch, client)(errand.url, errand.init));
  },
};

export const X402_CLIENTS: readonly Client[] = [x402Fetch, x402Axios, gateway, channel];
