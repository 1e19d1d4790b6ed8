import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { API_CATALOG_LINK } from '../../../src/catalogue/paths.ts';
import { faultBy, readSkill } from '../../support/agents.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { findRoute, payFor } from '../../support/skill-walk.ts';
import { balanceOf, newBuyer } from '../../support/usdc/buyer.ts';

// What an agent gets by convention from the real service, and what it can do with that alone.

const PROOF = `v=MCPv1; k=ed25519; p=${Buffer.alloc(32, 7).toString('base64')}`;

let network: EmbeddedNetwork;
let service: Service;
let skill: string;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  service = await startService(network, { env: { MPP: 'on', MCP_REGISTRY_AUTH: PROOF } });
  skill = (await service.get('/SKILL.md')).body;
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

describe('a program that has the skill and an HTTP client', () => {
  test('finds a route for its question, reads the price, pays it once and has the answer, however often it asks', async () => {
    const { address, privateKey } = await newBuyer(network);
    const before = await balanceOf(network, address);
    const { url, priceUsd } = await findRoute(skill, 'what does this wallet address hold');
    expect(new URL(url).pathname).toBe('/v1/paid/chain/wallet');
    const { amount, answer, again, lookup } = await payFor(skill, url, `0x${privateKey.toString('hex')}`);
    expect(amount).toBe(BigInt(Math.round(Number(priceUsd) * 1e6)));
    expect(answer).toMatchObject({ reason: null, status: 200, transaction: expect.stringMatching(/^0x[0-9a-f]{64}$/) });
    expect(JSON.parse(answer.body)).toMatchObject({
      address: new URL(url).searchParams.get('address')?.toLowerCase(),
    });
    expect(await again()).toEqual(answer);
    expect(before - (await balanceOf(network, address))).toBe(amount);
    const looked = await service.get(lookup);
    expect([looked.status, looked.body]).toEqual([200, expect.stringContaining(String(answer.transaction))]);
  });

  test('pays nothing for the route that always fails', async () => {
    const { address, privateKey } = await newBuyer(network);
    const [, path = ''] = /^`(\S+)` always fails and never charges/m.exec(skill) ?? [];
    const { answer } = await payFor(skill, service.origin + path, `0x${privateKey.toString('hex')}`);
    expect([answer.status, JSON.parse(answer.body).charged, answer.transaction]).toEqual([500, false, null]);
    expect(await balanceOf(network, address)).toBe(1_000_000n);
  });

  test('would not get there by a skill with one wrong word', async () => {
    const { privateKey } = await newBuyer(network);
    const key = `0x${privateKey.toString('hex')}` as const;
    const question = 'what does this wallet address hold';
    const { url } = await findRoute(skill, question);
    await expect(findRoute(skill.replace('?source=own&q=', '?question='), question)).rejects.toThrow();
    await expect(payFor(skill.replace('`PAYMENT-REQUIRED` is', '`PAYMENT` is'), url, key)).rejects.toThrow();
    for (const [right, wrong, reason] of [
      ['header `PAYMENT-SIGNATURE`', 'header `PAYMENT-SIGNED`', 'Payment required'],
      ['"name":"<entry.extra.name>"', '"name":"<entry.scheme>"', 'invalid_exact_evm_signature'],
      ['"to":"<entry.payTo>"', '"to":"<entry.asset>"', 'invalid_exact_evm_recipient_mismatch'],
    ] as const) {
      expect(skill).toContain(right);
      const { answer } = await payFor(skill.replace(right, wrong), url, key);
      expect([wrong, answer.status, answer.reason]).toEqual([wrong, 402, reason]);
    }
  });
});

/** Without their parameters, and on a chain without tokens, some routes answer with a 400. */
const ANSWERS = new Set([200, 400, 402]);

test('the skill that is served is that of the network, and fits its convention', async () => {
  const { headers } = await service.get('/SKILL.md');
  expect(headers['content-type']).toBe('text/markdown; charset=utf-8');
  expect(Buffer.byteLength(skill)).toBeLessThanOrEqual(6000);
  expect(faultBy('skill', readSkill(skill).front)).toBeNull();
  expect(skill).toContain('play money: there is none to buy');
  for (const path of new Set([...skill.matchAll(/`(?:GET )?(\/[\w./-]*)/g)].map(([, found]) => String(found)))) {
    // Prefixes and the lookup have no answer of their own; the tools are asked by POST.
    if (/^\/(v1\/mpp|v1\/payments\/|mcp.*)$/.test(path)) continue;
    // What is collected answers once the collector has read its first blocks.
    const statusOf = async () => (await service.get(path)).status;
    await expect.poll(statusOf, { timeout: 60_000, message: path }).toSatisfy((got: number) => ANSWERS.has(got));
  }
});

describe('the API catalog', () => {
  test('leads from the landing page and from every 402 to every document and API', async () => {
    const surfaces = ['/v1/paid', '/v1/lightning', '/v1/mpp'].map((prefix) => `${prefix}/fees/estimate`);
    for (const path of ['/', ...surfaces, '/.well-known/api-catalog']) {
      // An offer over Lightning makes an invoice, so there is none for a HEAD.
      for (const method of path.startsWith('/v1/lightning') ? ['GET'] : ['GET', 'HEAD']) {
        const { status, headers } = await service.get(path, { method });
        expect([path, method, status, headers.link]).toEqual([
          path,
          method,
          surfaces.includes(path) ? 402 : 200,
          API_CATALOG_LINK,
        ]);
      }
    }
    const unread = await service.get('/v1/paid/fees/estimate', { headers: { 'payment-signature': 'unreadable' } });
    expect([unread.status, unread.headers.link]).toEqual([402, API_CATALOG_LINK]);
    const [, path = ''] = /^<([^>]+)>; rel="api-catalog"$/.exec(API_CATALOG_LINK) ?? [];
    const { headers, body } = await service.get(path);
    expect(headers['content-type']).toBe('application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"');
    const document = JSON.parse(body);
    expect(faultBy('linkset', document)).toBeNull();
    const links = document.linkset.flatMap(({ anchor: _, ...relations }: Record<string, object[]>) =>
      Object.values(relations).flat(),
    ) as { href: string; type?: string }[];
    for (const { href, type } of links) {
      const isPost = href.endsWith('/mcp');
      const answer = await fetch(href);
      expect([href, answer.status]).toEqual([href, isPost ? 405 : 200]);
      if (type) expect(`${answer.headers.get('content-type')};`, href).toContain(`${type};`);
      await answer.body?.cancel();
    }
  });

  test('is on no answer that is no 402', async () => {
    for (const path of ['/v1/fees/estimate', '/v1/paid', '/v1/nothing', '/SKILL.md']) {
      expect((await service.get(path)).headers.link, path).toBeUndefined();
    }
  });
});

test('the registration of ERC-8004 names services that answer, and the version that the tools server speaks', async () => {
  const document = JSON.parse((await service.get('/.well-known/agent-registration.json')).body);
  expect(faultBy('registration', document)).toBeNull();
  const endpoints = document.services.map(({ endpoint }: { endpoint: string }) => endpoint);
  for (const url of [document.image, ...endpoints]) {
    const { status, body } = await fetch(url);
    expect([url, status]).toEqual([url, url.endsWith('/mcp') ? 405 : 200]);
    await body?.cancel();
  }
  const { version } = document.services.find(({ name }: { name: string }) => name === 'MCP');
  const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'test', version: '1' } };
  const answer = await service.get('/mcp', {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
  });
  expect(JSON.parse(answer.body).result.protocolVersion).toBe(version);
});

test('the MCP registry reads the operator’s proof', async () => {
  const { status, headers, body } = await service.get('/.well-known/mcp-registry-auth');
  expect([status, headers['content-type'], body.trim()]).toEqual([200, 'text/plain; charset=utf-8', PROOF]);
});
