import { describe, expect, test } from 'vitest';
import { createServerJson } from '../../../scripts/lib/server-json.ts';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { entriesOn, pathOn } from '../../../src/catalogue/paths.ts';
import { loadConfig } from '../../../src/config.ts';
import {
  type AgentFacts,
  createAgentRegistration,
  createApiCatalog,
  createSkill,
} from '../../../src/http/documents.ts';
import { WOULD_BE_REFUSED } from '../../../src/payment/protocol.ts';
import { offersUnder } from '../../../src/wiring/surfaces.ts';
import { ENV } from '../../http/harness.ts';
import { faultBy, readSkill } from '../../support/agents.ts';
import { inRepository, readText } from '../../support/documents.ts';

const publicOrigin = 'https://here.example';
const LONG = `https://${'a'.repeat(63)}.${'b'.repeat(63)}.example`;

function factsUnder(env: Record<string, string>, more: Partial<AgentFacts> = {}): AgentFacts {
  const config = loadConfig({ ...ENV, ...env });
  const offerOf = offersUnder(config);
  const requirementOf = (endpoint: Endpoint<never>) => offerOf(endpoint).requirement;
  const chain = config.network;
  return { catalogue, chain, publicOrigin, requirementOf, lightning: true, mpp: false, ...more };
}
const ARC = { NETWORK: 'arc', CHAIN_ID: '', RPC_URLS: '', USDC_ADDRESS: '' };
const facts = factsUnder(ARC);
const skill = createSkill(facts);

describe('the skill', () => {
  test('has at most 6,000 bytes, also under a long address, with everything on', () => {
    const name = 'A chain with a name of forty characters.';
    const how = { getUsdcUrl: `${LONG}/how-to-get-usdc`, getUsdcHow: facts.chain.getUsdcHow };
    const chain = { name, isPlayMoney: false, ...how };
    const most = createSkill({ ...facts, chain, publicOrigin: LONG, mpp: true });
    expect(Buffer.byteLength(most)).toBeLessThanOrEqual(6000);
    expect(Buffer.byteLength(skill)).toBeLessThanOrEqual(6000);
    expect(Buffer.byteLength(createSkill(factsUnder({ PLAY_MONEY: 'on' }, { mpp: true })))).toBeLessThanOrEqual(6000);
  });

  test('has the frontmatter of agentskills.io, also with the names that a chain may have', () => {
    const { front, body } = readSkill(skill);
    expect([faultBy('skill', front), front.name]).toEqual([null, 'percall']);
    expect(body).toMatch(/^\n# percall: data by the call\n/);
    for (const name of ['9 Chain (x).', 'A.b-c (d)']) {
      const { front: of } = readSkill(createSkill(factsUnder({ NETWORK_NAME: name, PLAY_MONEY: 'on' })));
      expect(faultBy('skill', of)).toBeNull();
      expect(of.description).toContain(`USDC on ${name} (demo, play money)`);
    }
    expect(faultBy('skill', { ...front, name: 'Per Call' })).not.toBeNull();
    expect(faultBy('skill', { ...front, description: 'x'.repeat(1025) })).not.toBeNull();
  });

  test('has every priced route with its price, and every free one', () => {
    for (const { path, price } of catalogue.filter(({ access }) => access === 'paid')) {
      const [, family = '', ...rest] = path.split('/');
      if (family === 'selftest') expect(skill).toContain(`/v1/paid${path}\``);
      else expect(skill).toMatch(new RegExp(`^- ${family}: .*\\b${rest.join('/')} ${price?.usd}\\b`, 'm'));
    }
    for (const entry of entriesOn(catalogue, 'free')) expect(skill).toContain(`\`${pathOn(entry, 'free')}\``);
    const others = catalogue.filter(({ path }) => path !== '/chain/wallet');
    const wallet = catalogue.find((entry) => !others.includes(entry)) as Endpoint<never>;
    const dearer = { ...wallet, price: { usd: '0.9', units: 900_000n } };
    expect(createSkill({ ...facts, catalogue: [dearer, ...others] })).toMatch(/^- chain: wallet 0\.9, /m);
    expect(createSkill({ ...facts, catalogue: others })).not.toMatch(/^- chain: wallet/m);
  });

  test('names the asset and the dearest price as the 402s do', () => {
    const paid = entriesOn(catalogue, 'paid').map(facts.requirementOf);
    const most = Math.max(...paid.map(({ amount }) => Number(amount)));
    expect(skill).toContain(`\`network\` \`${paid[0]?.network}\`, \`asset\` \`${paid[0]?.asset}\``);
    expect(skill).toContain(`asks \`${most}\` (${most / 1e6} USDC)`);
  });

  test('names codes that the service sends, and the words of the hint', () => {
    const source = inRepository('src/**/*.ts').map(readText).join('\n');
    const codes = [...skill.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, code]) => code);
    expect(codes).toContain('payment_already_used');
    expect(codes.filter((code) => !source.includes(`'${code}'`) && !source.includes(`${code}:`))).toEqual([]);
    const [, words = ''] = /has "([^"]+)"/.exec(skill) ?? [];
    expect(words).not.toBe('');
    expect(WOULD_BE_REFUSED).toContain(words);
  });

  test('says where to get money: what docs/paying.md says, or the operator’s link alone, or that it is play money', () => {
    const plain = readText('docs/paying.md').replace(/\[([^\]]*)\]\([^)]*\)/g, '$1');
    for (const NETWORK of ['arc', 'arc-testnet']) {
      const of = factsUnder({ ...ARC, NETWORK });
      const { getUsdcHow, getUsdcUrl } = of.chain;
      expect(plain.toLowerCase()).toContain(String(getUsdcHow).toLowerCase());
      expect(createSkill(of)).toContain(`${getUsdcHow}: ${getUsdcUrl}\n`);
    }
    const own = createSkill(factsUnder({ ...ARC, GET_USDC_URL: 'https://swap.example' }));
    expect(own).toContain('How to get it: https://swap.example\n');
    expect(own).not.toContain("Circle's");
    expect(createSkill(factsUnder({}))).not.toContain('How to get it');
    const demo = createSkill(factsUnder({ PLAY_MONEY: 'on', GET_USDC_URL: 'https://swap.example' }));
    expect(demo).toContain('play money: there is none to buy');
    expect(demo).not.toContain('swap.example');
  });

  test('offers bitcoin and MPP only where they are on', () => {
    expect(skill).toContain('`/mcp/lightning`');
    expect(skill).not.toContain('/v1/mpp');
    const none = createSkill({ ...facts, lightning: false, mpp: true, catalogue: entriesOn(catalogue, 'paid') });
    expect(none).toContain('/v1/mpp');
    expect(none).not.toMatch(/lightning|bitcoin/i);
  });
});

describe('the API catalog', () => {
  const document = createApiCatalog(facts);

  test('is a linkset of APIs, which are of this origin', () => {
    expect(faultBy('linkset', document)).toBeNull();
    const hrefs = [...JSON.stringify(document).matchAll(/"(?:href|anchor)":"([^"]+)"/g)].map(([, url]) => url);
    expect(hrefs.length).toBeGreaterThan(10);
    expect(hrefs.filter((url) => !url?.startsWith(`${publicOrigin}/`))).toEqual([]);
    expect(JSON.stringify(document)).toContain('/v1/lightning');
    expect(JSON.stringify(createApiCatalog({ publicOrigin, lightning: false }))).not.toContain('lightning');
  });

  test('its schema finds a link without an address, an unknown relation and a catalog without an API', () => {
    const [first, ...others] = document.linkset;
    expect(faultBy('linkset', { linkset: others })).not.toBeNull();
    expect(faultBy('linkset', { linkset: [first, { anchor: publicOrigin, 'service-doc': [{}] }] })).not.toBeNull();
    expect(faultBy('linkset', { linkset: [first, { anchor: publicOrigin, docs: [{ href: LONG }] }] })).not.toBeNull();
  });
});

describe('the registration of ERC-8004', () => {
  const at = 'eip155:8453:0x8004A169FB4a3325136EB29fA0ceB6D2e539a432';
  const { registrations } = loadConfig({ ...ENV, AGENT_REGISTRATIONS: `${at}=22` }).agents;
  const document = createAgentRegistration(facts, registrations, '2025-11-25');

  test('has the shape of registration-v1, its services and x402, and where it is registered', () => {
    expect(faultBy('registration', JSON.parse(JSON.stringify(document)))).toBeNull();
    expect(document).toMatchObject({ x402Support: true, registrations: [{ agentId: 22, agentRegistry: at }] });
    const free = createAgentRegistration({ ...facts, catalogue: [] }, [], '1');
    expect([free.x402Support, free.registrations]).toEqual([false, []]);
  });

  test('its schema finds a service without an endpoint, and a registration without its registry', () => {
    expect(faultBy('registration', { ...document, services: [{ name: 'web' }] })).not.toBeNull();
    expect(faultBy('registration', { ...document, registrations: [{ agentId: 1 }] })).not.toBeNull();
    expect(faultBy('registration', { ...document, x402support: true })).not.toBeNull();
  });
});

describe('server.json', () => {
  test('has the shape of 2025-12-11, and its namespace is the host, reversed', () => {
    const document = createServerJson('https://api.here.example:8443', catalogue);
    expect(faultBy('server', document)).toBeNull();
    expect(document).toMatchObject({
      name: 'example.here.api/percall',
      version: JSON.parse(readText('package.json')).version,
      remotes: [{ type: 'streamable-http', url: 'https://api.here.example:8443/mcp' }],
    });
  });

  test('names as many families as the registry has room for', () => {
    const paths = ['/quotes/closing', '/weather/now'] as const;
    const more = paths.map((path) => ({ ...catalogue.at(-1)!, path }));
    const document = createServerJson(publicOrigin, [...catalogue, ...more]);
    expect(faultBy('server', document)).toBeNull();
    expect(document.description).toMatch(/^Data by the call: .*\bwiki/);
    expect(document.description).not.toContain('weather');
  });

  test('stands in docs/agents, beside the skill in a folder of its name', () => {
    expect(faultBy('server', JSON.parse(readText('docs/agents/server.json')))).toBeNull();
    const text = readText(`docs/agents/percall/SKILL.md`);
    expect(text).toBe(createSkill({ ...facts, publicOrigin: '$ORIGIN' }));
  });

  test('its schema finds a long description and a name without a namespace', () => {
    const document = createServerJson(publicOrigin, catalogue);
    expect(faultBy('server', { ...document, description: 'x'.repeat(101) })).not.toBeNull();
    expect(faultBy('server', { ...document, name: 'percall' })).not.toBeNull();
    expect(faultBy('server', { ...document, remotes: [{ type: 'stdio', url: LONG }] })).not.toBeNull();
  });
});
