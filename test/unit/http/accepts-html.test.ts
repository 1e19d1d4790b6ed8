import { expect, test } from 'vitest';
import { acceptsHtml } from '../../../src/http/answers.ts';

const asks = (accept: string | undefined, method = 'GET') =>
  acceptsHtml({ method, headers: { ...(accept !== undefined && { accept }) } });

test.each([
  'text/html',
  'TEXT/HTML ; charset=utf-8',
  'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
  'application/json;q=0.5, text/html;q=0.6',
  'text/html, application/xhtml+xml, image/jxr, */*;q=0.9',
  'text/html, application/*;q=0.9, */*;q=0.1',
  'text/html, application/json;q=0.5, */*',
])('%s asks for a page', (accept) => {
  expect([asks(accept), asks(accept, 'HEAD'), asks(accept, 'POST')]).toEqual([true, true, false]);
});

test.each([
  undefined,
  '',
  '*/*',
  'text/*',
  'application/json',
  'application/json, text/html',
  'text/html;q=0.5, application/json',
  'application/problem+json, text/html;q=0.9',
  'text/html;q=0',
  'text/html;q=x',
  'text/html;q=0.1, */*',
  'text/html, */*',
  'text/markdown, text/html, */*',
  'text/html;q=0.5, application/*',
  'application/xhtml+xml',
  'x-text/htm, */*',
])('%s does not ask for a page', (accept) => {
  expect(asks(accept)).toBe(false);
});
