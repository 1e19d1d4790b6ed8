import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { describeLedgers } from '../../support/ledger/ledger-adapters.ts';
import { proofOfAnother } from '../../support/lightning/settle-calls.ts';
import { freshDatabase } from '../../support/postgres/postgres-run.ts';
import { callMessage, MCP_HEADERS, textOf } from '../../support/service/mcp.ts';
import { moodyEndpoint } from '../../support/service/moody-endpoint.ts';
import { type Answer, call, type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { decoded, newBuyer, type Payment, transfersOf } from '../../support/usdc/buyer.ts';
import { signForGateway } from '../../support/usdc/gateway-payment.ts';
import { type GatewayStandIn, startGatewayStandIn } from '../../support/usdc/gateway-stand-in.ts';
import { headerOf, payloadOf, type Requirement } from '../../support/usdc/payments.ts';

// Every request comes from loopback, so only the headers distinguish a proxy on this machine from a buyer on it.

const PATH = '/v1/paid/test/moody';
const WALLET = `0x${'77'.repeat(20)}` as const;
const [ONE, ANOTHER] = ['203.0.113.1', '203.0.113.2'];
const USED = [402, 'payment_already_used'];

type Headers = Record<string, string>;

describeLedgers('whose address a request has', ({ name }) => {
  const moody = moodyEndpoint();
  let network: EmbeddedNetwork;
  let ledger: Headers;
  beforeAll(async () => {
    network = await startEmbeddedNetwork({ blockTimeMs: 100 });
    ledger = name === 'postgres' ? { LEDGER_URL: await freshDatabase() } : {};
  });
  afterAll(() => network?.stop());

  let service: Service;
  const start = async (env: Headers = {}) => {
    service = await startService(network, {
      catalogue: [moody.endpoint],
      env: { ...ledger, COLLECTOR: 'off', ...env },
    });
  };

  const sign = async (): Promise<Payment> => (await newBuyer(network)).sign(service.origin, PATH);
  const buy = ({ header }: Payment, headers: Headers = {}) =>
    call(service.origin, PATH, { headers: { 'payment-signature': header, ...headers } });
  const under = (id: string, payment: Payment): Payment => {
    const extensions = { 'payment-identifier': { info: { required: false, id } } };
    return { ...payment, header: headerOf(payloadOf(payment.authorization, payment.requirement, extensions)) };
  };
  const refused = (answer: Answer) => [
    answer.status,
    answer.headers['payment-required'] && decoded(answer, 'payment-required').error,
  ];

  describe('with TRUSTED_PROXIES empty', () => {
    beforeAll(() => start());
    afterAll(() => service?.stop());

    test('another client behind the buyer’s proxy cannot fetch a reply with the copied payment, whatever address it claims', async () => {
      const payment = await sign();
      const first = await buy(payment, { 'x-forwarded-for': ONE });
      expect(first.status).toBe(200);
      const copies: Headers[] = [
        { 'x-forwarded-for': ANOTHER },
        { 'x-forwarded-for': ONE },
        { forwarded: `for=${ONE}` },
        { 'x-real-ip': ONE },
        { via: '1.1 proxy' },
        // Directly, from the proxy's own machine.
        {},
      ];
      for (const headers of copies) expect([headers, refused(await buy(payment, headers))]).toEqual([headers, USED]);
      expect(await transfersOf(network, payment)).toBe(1);
    });

    test('a buyer behind a proxy fetches its reply by its payment identifier, which other clients do not know', async () => {
      const payment = await sign();
      const mine = under('only-the-buyer-knows-this', payment);
      const first = await buy(mine, { 'x-forwarded-for': ONE });
      const again = await buy(mine, { 'x-forwarded-for': ONE });
      expect([first.status, again.status, again.body]).toEqual([200, 200, first.body]);
      expect(again.headers['payment-response']).toBe(first.headers['payment-response']);
      expect(refused(await buy(payment, { 'x-forwarded-for': ONE }))).toEqual(USED);
      expect(refused(await buy(under('somebody-elses-wild-guess', payment), { via: '1.1 proxy' }))).toEqual(USED);
      expect(await transfersOf(network, payment)).toBe(1);
    });

    test('a client that claims to come through a proxy cannot fetch the reply of a buyer that came directly', async () => {
      const payment = await sign();
      const first = await buy(payment);
      expect(refused(await buy(payment, { 'x-forwarded-for': '127.0.0.1' }))).toEqual(USED);
      // Without a proxy the buyer’s address is enough.
      expect(await buy(payment)).toMatchObject({ status: 200, body: first.body });
    });

    test('a tool’s answer is fetched again under the same rule', async () => {
      const payment = await sign();
      const ask = async (payload: Payment, headers: Headers = {}) => {
        const meta = { 'x402/payment': JSON.parse(Buffer.from(payload.header, 'base64').toString()) };
        const body = JSON.stringify(callMessage('paid_test_moody', {}, meta));
        const answer = await call(service.origin, '/mcp', {
          method: 'POST',
          headers: { ...MCP_HEADERS, ...headers },
          body,
        });
        return JSON.parse(answer.body).result;
      };
      const mine = under('only-this-agent-knows-it', payment);
      const first = await ask(mine, { 'x-forwarded-for': ONE });
      expect(first.isError).toBeUndefined();
      expect((await ask(payment, { 'x-forwarded-for': ONE })).structuredContent.error).toBe(USED[1]);
      expect(textOf(await ask(mine, { 'x-forwarded-for': ANOTHER }))).toBe(textOf(first));
      const straight = await sign();
      const before = await ask(straight);
      expect(textOf(await ask(straight))).toBe(textOf(before));
      expect((await ask(straight, { via: '1.1 proxy' })).structuredContent.error).toBe(USED[1]);
    });
  });

  describe('with TRUSTED_PROXIES empty and a Gateway payment', () => {
    let gateway: GatewayStandIn;
    beforeAll(async () => {
      gateway = await startGatewayStandIn(network.chainId, WALLET);
      await start({ GATEWAY: 'on', GATEWAY_URL: gateway.url, GATEWAY_WALLET_ADDRESS: WALLET });
      await until('the Gateway was asked', async () => {
        const { checks } = JSON.parse((await service.get('/readyz')).body);
        return checks.gateway?.detail === undefined;
      });
    });
    afterAll(async () => {
      await service?.stop();
      await gateway?.stop();
    });

    test('the reply comes again by the payment identifier, and never by a proxy’s address', async () => {
      const { privateKey, address } = await newBuyer(network, 0n);
      gateway.deposit(address, 5000n);
      const { accepts } = decoded(await service.get(PATH), 'payment-required') as { accepts: Requirement[] };
      const requirement = accepts[1] as Requirement;
      const authorization = signForGateway(privateKey, requirement, WALLET);
      const payment = { authorization, requirement, header: headerOf(payloadOf(authorization, requirement)) };
      const mine = under('only-this-depositor-knows-it', payment);
      const first = await buy(mine, { 'x-forwarded-for': ONE });
      expect(first.status).toBe(200);
      expect(refused(await buy(payment, { 'x-forwarded-for': ONE }))).toEqual(USED);
      expect(refused(await buy(payment))).toEqual(USED);
      expect(await buy(mine, { 'x-forwarded-for': ANOTHER })).toMatchObject({ status: 200, body: first.body });
      expect(gateway.depositOf(address)).toBe(5000n - BigInt(requirement.amount));
    });
  });

  describe('with the proxy in TRUSTED_PROXIES', () => {
    beforeAll(() => start({ TRUSTED_PROXIES: '127.0.0.1', FACILITATOR_DAILY_CAP: '40' }));
    afterAll(() => service?.stop());

    test('the address that the proxy saw is the buyer’s: it fetches its reply, its neighbour behind the proxy does not', async () => {
      const payment = await sign();
      const first = await buy(payment, { 'x-forwarded-for': ONE });
      const again = await buy(payment, { 'x-forwarded-for': `198.51.100.9, ${ONE}` });
      expect([first.status, again.status, again.body]).toEqual([200, 200, first.body]);
      expect(refused(await buy(payment, { 'x-forwarded-for': `${ONE}, ${ANOTHER}` }))).toEqual(USED);
    });

    test('a proxy that does not send X-Forwarded-For leaves its clients without an address, like one that is not trusted', async () => {
      const payment = await sign();
      expect((await buy(payment, { forwarded: `for=${ONE}` })).status).toBe(200);
      expect(refused(await buy(payment, { forwarded: `for=${ONE}` }))).toEqual(USED);
    });

    test('ten networks of one /48 get a tenth of the facilitator’s day together, and a host elsewhere its own tenth', async () => {
      const settle = async (address: string) => {
        const headers = { 'content-type': 'application/json', 'x-forwarded-for': address };
        const body = JSON.stringify(proofOfAnother().body);
        let end: unknown[] = [];
        // A shared count may take 1.5 s. After that nothing is claimed, and the client is told to bring the same proof again.
        await until('the call is counted', async () => {
          const answer = await call(service.origin, '/facilitator/settle', { method: 'POST', headers, body });
          end = [answer.status, JSON.parse(answer.body).errorReason];
          return end[1] !== 'replay_store_unavailable';
        });
        return end;
      };
      const ends = [];
      for (let n = 0; n < 10; n++) ends.push(await settle(`2001:db8:7:${n}::1`));
      expect(ends).toEqual([...Array(4).fill([200, undefined]), ...Array(6).fill([503, 'daily_cap_reached'])]);
      expect(await settle('2001:db8:8::1')).toEqual([200, undefined]);
    });
  });
});
