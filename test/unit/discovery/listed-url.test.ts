import { describe, expect, test } from 'vitest';
import { placeOf, readListedUrl } from '../../../src/discovery/entry.ts';

describe('a listed address', () => {
  test('is kept as it was written, with placeholders', () => {
    expect(readListedUrl('https://API.Example.com:8443/v1/{id}/x/?a={b}#top')).toEqual({
      url: 'https://API.Example.com:8443/v1/{id}/x/?a={b}',
      host: 'api.example.com:8443',
      origin: 'https://api.example.com:8443',
      path: '/v1/{id}/x',
    });
    expect(readListedUrl('http://a.example')).toMatchObject({ host: 'a.example', path: '/' });
    expect(readListedUrl('https://a.example?x=1')).toMatchObject({ path: '/' });
  });

  test.each([
    ...[
      'javascript:alert(1)',
      'data:text/html,x',
      'ftp://a.example/',
      'file:///etc/passwd',
      '//a.example/',
      'a.example/x',
      '',
    ],
    ...[
      'http://127.0.0.1/',
      'http://[::1]/',
      'http://10.0.0.1/',
      'http://2130706433/',
      'http://0x7f.1/',
      'http://8.8.8.8/',
    ],
    ...[
      'http://localhost/',
      'http://x.localhost/',
      'http://printer.local/',
      'http://intranet/',
      'http://metadata.google.internal/',
    ],
    ...[
      'https://user:pass@a.example/',
      'https://user@a.example/',
      'https://a.example/ x',
      'https://a.example/"onclick',
      'https:/a.example/',
    ],
    ...[
      'https://a.example/<script>',
      'https://a.example/\u202e',
      'https://a.example/\n',
      `https://a.example/${'x'.repeat(1000)}`,
      'https:\\\\a.example\\',
    ],
  ])('%j is refused', (text) => {
    expect(readListedUrl(text)).toBeNull();
  });

  test.each([[null], [7], [{}], [['https://a.example/']]])('%j is refused', (value) => {
    expect(readListedUrl(value)).toBeNull();
  });

  test.each([
    ['https://a.example/x', 'http://A.example/X/'],
    ['https://a.example/x/{id}', 'https://a.example/x/{name}?y=1'],
    ['https://a.example/x/{id}', 'https://a.example/x/%7Bid%7D'],
    ['https://a.example/x/{id}', 'https://a.example/x/:id'],
  ])('%s is the place of %s', (one, other) => {
    expect(placeOf(one)).toBe(placeOf(other));
  });

  test.each([
    ['https://a.example/x', 'https://b.example/x'],
    ['https://a.example/x', 'https://a.example:8443/x'],
    ['https://a.example/x', 'https://a.example/x/y'],
  ])('%s is another place than %s', (one, other) => {
    expect(placeOf(one)).not.toBe(placeOf(other));
  });
});
