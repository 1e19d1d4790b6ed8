import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { auditAccessibility } from '../support/pages/axe.ts';
import { describeInBrowser } from '../support/pages/browser.ts';

// The other suites assert that the browser saw no fault. This suite asserts that the observation finds faults that exist.

const FAULTY = `<!doctype html><html><title>Faulty</title><body>
<meta name="viewport" content="width=device-width">
<p style="color: #eee">pale</p><img src="/picture.png"><script>inline()</script><script src="/faulty.js"></script>`;
const SCRIPT = `console.error('a word of its own');
setTimeout(() => { throw new Error('uncaught'); });
fetch('http://192.0.2.1/').catch(() => {});
fetch('http://outside.example/').catch(() => {});`;
const CSP = "default-src 'none'; script-src 'self'; connect-src http:";

describeInBrowser('a page is observed', (browser) => {
  let server: Server;
  let origin: string;
  beforeAll(async () => {
    server = createServer((request, response) => {
      const isScript = request.url === '/faulty.js';
      response.setHeader('content-type', isScript ? 'text/javascript' : 'text/html');
      if (request.url === '/') response.setHeader('content-security-policy', CSP);
      response.end(isScript ? SCRIPT : FAULTY);
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  afterAll(() => server.close());

  test('the observation reports errors, policy violations, requests and bytes, and the browser reaches nothing beyond loopback', async () => {
    const { page, observed } = await browser.visit(`${origin}/`);
    await page.waitForLoadState('networkidle');
    // After a pause of this process the page counts as idle before everything that it reports is read.
    for (const outside of ['http://192.0.2.1/', 'http://outside.example/'])
      await expect.poll(() => observed.failedRequests).toContain(`${outside}: net::ERR_NAME_NOT_RESOLVED`);
    await expect.poll(() => observed.cspViolations.length).toBeGreaterThanOrEqual(3);
    await expect.poll(() => observed.pageErrors.length).toBeGreaterThan(0);
    await expect.poll(() => observed.consoleErrors).toContainEqual(`a word of its own (${origin}/faulty.js)`);
    expect(observed.pageErrors).toEqual([expect.stringContaining('uncaught')]);
    const directives = observed.cspViolations.map((violation) => violation.split(' ')[0]);
    expect(directives.sort()).toEqual(['img-src', 'script-src-elem', 'style-src-attr']);
    expect(observed.requests).toContain('http://outside.example/');
    await expect.poll(() => observed.transferredBytes).toBeGreaterThan(FAULTY.length + SCRIPT.length);
  });

  test('the check finds serious and critical accessibility faults under a strict CSP', async () => {
    const { page } = await browser.visit(`${origin}/`);
    const rules = (await auditAccessibility(page)).map(({ rule }) => rule);
    expect(rules).toEqual(expect.arrayContaining(['html-has-lang', 'image-alt']));
  });

  test('the check finds the faults of a part although parts that are alike are taken out, and puts these back', async () => {
    const { page } = await browser.visit(`${origin}/`);
    const parts = ['a', 'b', 'c'].map((id) => `<div class="part" id="${id}"><img src="/picture.png"></div>`).join('');
    await page.evaluate(`document.body.insertAdjacentHTML('beforeend', ${JSON.stringify(parts)})`);
    const faulty = async (within?: string) => {
      const found = await auditAccessibility(page, { alike: '.part', ...(within && { within }) });
      const elements = found.filter(({ rule }) => rule === 'image-alt').flatMap((finding) => finding.elements);
      return ['#a', '#b', '#c'].filter((id) => elements.some((element) => element.startsWith(`${id} `)));
    };
    expect([await faulty(), await faulty('#c')]).toEqual([['#a'], ['#c']]);
    expect(await page.locator('.part').count()).toBe(3);
  });

  test('the browser has the requested colour scheme and screen', async () => {
    const dark = await browser.visit(`${origin}/`, { colorScheme: 'dark', screen: 'phone' });
    const light = await browser.visit(`${origin}/`);
    const look = '[matchMedia("(prefers-color-scheme: dark)").matches, innerWidth]';
    expect(await dark.page.evaluate(look)).toEqual([true, 360]);
    expect(await light.page.evaluate(look)).toEqual([false, 1280]);
  });
});
