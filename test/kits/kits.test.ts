import { execFile } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../dev/network.ts';
import { KIT_CLIENTS } from '../../scripts/clients/faremeter-client.ts';
import { judgeClient } from '../../scripts/clients/judge.ts';
import { installKits, programOfKit } from '../../scripts/clients/kits.ts';
import { openShop } from '../../scripts/clients/shop.ts';
import * as documents from '../conformance/wire/documents.ts';
import * as lightning from '../conformance/wire/lightning.ts';
import * as tools from '../conformance/wire/mcp.ts';
import { recordMpp } from '../conformance/wire/mpp.ts';
import { openTranscript, openShop as openWireShop, type Shop as WireShop } from '../conformance/wire/shop.ts';
import * as refusals from '../conformance/wire/usdc-refusals.ts';
import * as sales from '../conformance/wire/usdc-sales.ts';
import { recordUsdcUnpaid } from '../conformance/wire/usdc-unpaid.ts';
import { documentedRows } from '../support/clients-table.ts';
import { gatherAnswers } from '../support/service/live-answers.ts';
import { BOUGHT, openLiveWorld } from '../support/service/live-world.ts';
import { ownPort } from '../support/service/own-port.ts';
import { type Exchange, faultsOf, isKnownRoute, type Prism, startPrism } from './prism.ts';

// Third parties' kits and clients against the whole service. Only SLOW=1 installs and runs them.

const missing = process.env.SLOW ? await installKits() : 'SLOW=1 runs them';
const skipped = missing === null ? '' : ` (skipped: ${missing})`;

describe.skipIf(missing !== null)(`clients and the MCP suite${skipped}`, () => {
  let shop: Awaited<ReturnType<typeof openShop>>;
  beforeAll(async () => {
    shop = await openShop({ port: await ownPort() });
  });
  afterAll(() => shop?.stop());

  test.each(KIT_CLIENTS.map((client) => [client.name, client] as const))(
    'the table of clients in docs/clients.md is true for %s',
    async (_name, client) => {
      const outcomes = await judgeClient(client, shop);
      expect(outcomes.filter(({ isLost }) => isLost)).toEqual([]);
      const { rows, documented } = documentedRows(outcomes);
      expect(documented).toEqual(rows);
    },
  );

  /** Of the suite's 30. The others need the tools of a test server, or features that this server does not announce. */
  const SCENARIOS = ['server-initialize', 'ping', 'tools-list', 'dns-rebinding-protection'];

  const runScenario = (scenario: string, path: string) =>
    new Promise<{ code: number; output: string }>((resolve) => {
      const program = programOfKit('@modelcontextprotocol/conformance/dist/index.js');
      const args = [program, 'server', '--url', `${shop.origin}${path}`, '--scenario', scenario];
      execFile(process.execPath, args, (error, stdout, stderr) =>
        resolve({ code: error ? Number(error.code) : 0, output: `${stdout}${stderr}` }),
      );
    });

  test.each(['/mcp', '/mcp/lightning'].flatMap((path) => SCENARIOS.map((scenario) => [path, scenario] as const)))(
    'the MCP conformance suite finds no fault in %s by %s',
    async (path, scenario) => {
      const { code, output } = await runScenario(scenario, path);
      expect([code, output]).toEqual([0, expect.stringMatching(/Passed: [1-9]\d*\/\d+, 0 failed/)]);
    },
  );

  test('the MCP conformance suite would notice a feature that is missing', async () => {
    expect(await runScenario('prompts-list', '/mcp')).toMatchObject({ code: 1 });
  });
});

describe.skipIf(missing !== null)(`Prism between tests and the service${skipped}`, () => {
  let network: EmbeddedNetwork;
  let shop: WireShop;
  let prism: Prism;
  beforeAll(async () => {
    network = await startEmbeddedNetwork({ lightning: true });
    shop = await openWireShop(network, { PAYER_MAX_OPEN: '1', MPP: 'on' });
    prism = await startPrism(shop.origin);
  });
  afterAll(async () => {
    await prism?.stop();
    await shop?.service.stop();
    await network?.stop();
  });

  /** The exchanges of the work. There are some of a route that the document has. */
  async function exchangesOf({ exchanges }: Prism, work: () => Promise<unknown>): Promise<Exchange[]> {
    const before = exchanges.length;
    await work();
    const made = exchanges.slice(before);
    expect(made.filter(isKnownRoute).length).toBeGreaterThan(0);
    return made;
  }

  test.each([
    ['the documents for machines', documents.recordDocuments],
    ['the manifest', documents.recordManifest],
    ['readiness', documents.recordReadiness],
    ['unpaid requests in USDC', recordUsdcUnpaid],
    ['unreadable payments', refusals.recordUnreadable],
    ['refused payments in USDC', refusals.recordUsdcRefusals],
    ['sales in USDC', sales.recordUsdcSales],
    ['failing sales in USDC', sales.recordUsdcFailures],
    ['unpaid requests over Lightning', lightning.recordLightningUnpaid],
    ['sales over Lightning', lightning.recordLightningSales],
    ['refused proofs', lightning.recordLightningRefusals],
    ['the list of tools', tools.recordTools],
    ['tool calls in USDC', tools.recordUsdcTools],
    ['tool calls over Lightning', tools.recordLightningTools],
    ['sales and refusals by MPP', recordMpp],
  ] as const)('finds no fault in %s', async (_title, record) => {
    const through = { ...shop, origin: prism.origin };
    const made = await exchangesOf(prism, () => record(openTranscript(network), through));
    expect(made.flatMap(faultsOf)).toEqual([]);
  });

  test('finds no fault in free routes, in each unpaid one, in bought answers and in their receipts', async () => {
    const world = await openLiveWorld();
    const between = await startPrism(world.service.origin);
    const made = await exchangesOf(between, () => gatherAnswers(world.network, between.origin, BOUGHT));
    expect(made.flatMap(faultsOf)).toEqual([]);
    expect(made.length).toBeGreaterThan(60);
    await between.stop();
    await world.stop();
  });

  test('finds a member that the document lacks, and a parameter that it does not allow', async () => {
    const alter = (text: string) => text.replaceAll('"playMoney"', '"playedMoney"').replaceAll('30000000', '50');
    const wrong = await startPrism(shop.origin, alter);
    const made = await exchangesOf(wrong, async () => {
      await fetch(`${wrong.origin}/v1/network`);
      await fetch(`${wrong.origin}/v1/fees/estimate?gas=51`);
    });
    expect(made.map((exchange) => faultsOf(exchange).length > 0)).toEqual([true, true]);
    await wrong.stop();
  });
});
