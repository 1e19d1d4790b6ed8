import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { type Postgres, startPostgres } from '../../../scripts/lib/ledger/postgres.ts';
import { describePostgres } from '../../support/ledger/ledger-adapters.ts';
import { proofNow, settleOver } from '../../support/lightning/settle-calls.ts';
import { type Instances, leaderOf, startInstances } from '../../support/service/instances.ts';
import { metricOf } from '../../support/service/metric.ts';
import { type Answer, call } from '../../support/service/service.ts';
import { presentUntilServed, servedBy, until, usesOf } from '../../support/service/workers.ts';
import { balanceOf, newBuyer, present } from '../../support/usdc/buyer.ts';

const PATH = '/v1/paid/fees/estimate';
/** No call of a burst is late for a pause of the database or of an instance. */
const TIMES = { LEDGER_CONNECT_TIMEOUT_MS: '20000', LEDGER_STATEMENT_TIMEOUT_MS: '20000' };

/** Whether the instance asks the buyer to present the payment again, because the ledger did not answer it in time. */
function isAskedAgain(answer: Answer | null): boolean {
  if (answer?.status !== 503) return false;
  const { code, charged } = JSON.parse(answer.body);
  return code === 'ledger_unavailable' && charged === 'unknown';
}

describePostgres('instances over one ledger', () => {
  // test/crash/instances.test.ts has three in the quick lane.
  describe.each(process.env.SLOW ? [2, 4] : [2])('(%i of them)', (count) => {
    let network: EmbeddedNetwork;
    let postgres: Postgres;
    let service: Instances;
    let buyer: Awaited<ReturnType<typeof newBuyer>>;
    beforeAll(async () => {
      network = await startEmbeddedNetwork();
      postgres = await startPostgres();
      await postgres.createDatabase('ledger');
      const env = { FACILITATOR_PER_MINUTE: '150', ...TIMES };
      service = await startInstances(network, postgres.url('ledger'), count, env);
      buyer = await newBuyer(network, 50_000_000n);
    });
    afterAll(async () => {
      await service?.stop();
      await postgres?.stop();
      await network?.stop();
    });

    test('have one leader, and all report ready', async () => {
      await until('all know each other, and one leads', async () => {
        const answers = await Promise.all(service.origins.map((origin) => call(origin, '/readyz')));
        const standing = answers.map(({ body }) => JSON.parse(body).checks.instances);
        const leading = standing.filter(({ leads }) => leads);
        return leading.length === 1 && standing.every(({ living }) => living === count);
      });
      // The first one leads since its start, unless a pause of it has made it step down.
      const hasSteppedDown = () => service.instances[0]?.log().includes('this instance has stepped down');
      await expect.poll(async () => hasSteppedDown() || (await leaderOf(service)) === 0).toBe(true);
      const leads = () => Promise.all(service.origins.map((origin) => metricOf(origin, 'instance_leads')));
      await expect.poll(async () => (await leads()).sort()).toEqual([...Array(count - 1).fill(0), 1]);
    });

    test('make one sale of 128 presentations of one payment over all of them', async () => {
      const payment = await buyer.sign(service.origin, PATH);
      const answers = await Promise.all(
        Array.from({ length: 128 }, () => present(service.origin, PATH, payment).catch(() => null)),
      );
      // The ledger's reads wait for each other. A presentation whose read takes 4 s is to come again.
      const late = answers.filter(isAskedAgain);
      const others = answers.filter((answer) => ![200, 409].includes(answer?.status ?? 0) && !isAskedAgain(answer));
      expect(others.map((answer) => answer && [answer.status, answer.body])).toEqual([]);
      const served = answers.filter((answer) => answer?.status === 200);
      const again = await Promise.all([null, ...late].map(() => presentUntilServed(service.origin, PATH, payment)));
      expect(new Set([...served, ...again].map((answer) => answer?.body)).size).toBe(1);
      expect(await usesOf(network, payment)).toBe(1);
      const rows = await service.ask<{ n: string }>('SELECT count(*) AS n FROM usdc_payments WHERE nonce = $1', [
        Buffer.from(payment.authorization.nonce),
      ]);
      expect(rows).toEqual([{ n: '1' }]);
    });

    test("all sell, whichever one settles, and the sum of all sales is the seller's balance", async () => {
      const payments = await Promise.all(Array.from({ length: count * 6 }, () => buyer.sign(service.origin, PATH)));
      const answers = await Promise.all(payments.map((payment) => presentUntilServed(service.origin, PATH, payment)));
      expect(new Set(answers.map(servedBy)).size).toBe(count);
      const [sum] = await service.ask<{ sum: string }>(
        "SELECT coalesce(sum(amount), 0) AS sum FROM usdc_payments WHERE state = 'settled'",
      );
      expect(BigInt(sum?.sum ?? 0)).toBe(await balanceOf(network, network.seller));
    });

    test('claim one Lightning proof once, and count a client’s minute across all', async () => {
      const proof = proofNow();
      const ends = await settleOver(
        service.origin,
        Array.from({ length: 128 }, () => proof),
        32,
      );
      expect(ends.filter((end) => end === 'success')).toHaveLength(1);
      const more = await settleOver(service.origin, Array.from({ length: 40 }, proofNow), 8);
      const numberOf = (end: string, of: readonly string[]) => of.filter((one) => one === end).length;
      // Counting a call takes 1.5 s at most, else the call is refused. Nobody knows then whether it was counted.
      const [before, since] = [ends, more].map((of) => numberOf('replay_store_unavailable', of)) as [number, number];
      expect(numberOf('success', more)).toBeLessThanOrEqual(150 - 128 + before);
      expect(numberOf('success', more)).toBeGreaterThanOrEqual(150 - 128 - since);
    });
  });
});
