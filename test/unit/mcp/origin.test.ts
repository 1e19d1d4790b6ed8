import { describe, expect, test } from 'vitest';
import { mayCallFrom } from '../../../src/mcp/mount.ts';

const PUBLIC = 'https://api.example.com';

describe('the Origin of a call', () => {
  test.each([
    ['absent, as programs send it', undefined, 'api.example.com'],
    ['our own page', 'https://api.example.com', 'api.example.com'],
    ['another site', 'https://chat.example', 'api.example.com'],
    ['another site, behind a proxy that renames us', 'https://chat.example', 'upstream:4021'],
    ['our own page, behind such a proxy', 'https://api.example.com', 'upstream:4021'],
    ['a page on this machine', 'http://localhost:3000', 'localhost:3000'],
    ['a page on this machine, by address', 'http://127.0.0.1:4021', '127.0.0.1:4021'],
    ['a page on this machine, IPv6', 'http://[::1]:4021', '[::1]:4021'],
  ])('may be %s', (_name, origin, host) => {
    expect(mayCallFrom(origin, host, PUBLIC)).toBe(true);
  });

  test.each([
    ['a rebound name', 'http://evil.example', 'evil.example'],
    ['a rebound name with a port', 'http://evil.example:4021', 'evil.example:4021'],
    ['a rebound name in other letters', 'http://EVIL.example', 'Evil.Example'],
    ['a name that only begins like this machine', 'http://localhost.evil.example', 'localhost.evil.example'],
    ['opaque', 'null', 'api.example.com'],
    ['empty', '', 'api.example.com'],
    ['no web page', 'file:///etc/passwd', 'api.example.com'],
    ['an extension', 'chrome-extension://abc', 'api.example.com'],
    ['a URL', 'https://chat.example/path', 'api.example.com'],
    ['two of them', 'https://chat.example https://api.example.com', 'api.example.com'],
    ['no host', 'https://', 'api.example.com'],
  ])('must not be %s', (_name, origin, host) => {
    expect(mayCallFrom(origin, host, PUBLIC)).toBe(false);
  });
});
