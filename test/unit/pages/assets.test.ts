import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { assetPath, findAsset } from '../../../src/pages/shell.ts';

const FOLDER = join(import.meta.dirname, '../../../src/pages/assets');
const names = readdirSync(FOLDER).filter((name) => /\.(js|css|svg)$/.test(name));
const scripts = names.filter((name) => name.endsWith('.js'));

describe('an asset', () => {
  test('has a path with its hash, ours and the libraries’', async () => {
    expect(names.length).toBeGreaterThan(5);
    for (const name of [...names, 'uplot.js', 'uplot.css', 'qr.js']) {
      const path = assetPath(name);
      const asset = await findAsset(path);
      expect(path).toBe(`/assets/${name.replace(/(\.\w+)$/, `.${asset?.hash}$1`)}`);
      expect(asset?.contentType).toMatch(/^(text\/(javascript|css)|image\/svg\+xml); charset=utf-8$/);
    }
  });

  test('with an unknown name is not found and not linked', async () => {
    expect(await findAsset('/assets/pages.css')).toBeUndefined();
    expect(await findAsset('/assets/../assets.ts')).toBeUndefined();
    expect(() => assetPath('gone.js')).toThrow('gone.js');
    expect(() => assetPath('tsconfig.json')).toThrow();
  });

  test('imports its neighbours under their hashed names', async () => {
    for (const name of scripts) {
      const source = readFileSync(join(FOLDER, name), 'utf8');
      const served = (await findAsset(assetPath(name)))?.forms.identity.bytes.toString() ?? '';
      const named = /(?:^import .*|^\} from |\bawait import\()'(?:\.\/([\w-]+\.js)|qr)'/gm;
      const imports = [...source.matchAll(named)].map(([, other = 'qr.js']) => other);
      for (const other of imports) expect(served).toContain(`'${assetPath(other)}'`);
      expect(served).not.toMatch(/(^(import|export)[^;]*|\bawait import\()'(\.\/|qr')/m);
    }
  });

  test('of ours makes no code or markup from text, and requests no other origin', () => {
    expect(scripts.length).toBeGreaterThan(2);
    for (const name of scripts) {
      const source = readFileSync(join(FOLDER, name), 'utf8');
      const sinks =
        /\beval\b|new Function|\.(inner|outer)HTML\s*\+?=[^=]|insertAdjacentHTML|document\.write|setTimeout\('|srcdoc/;
      expect([name, sinks.exec(source)?.[0]]).toEqual([name, undefined]);
      expect([name, /fetch\(\s*['"`]\w+:/.exec(source)?.[0]]).toEqual([name, undefined]);
    }
  });

  // So a check of the layout in one colour scheme holds in the other.
  test('of ours gives the dark scheme other colours and nothing else', () => {
    const styles = names.filter((name) => name.endsWith('.css'));
    const blocks = styles.flatMap((name) => {
      const source = readFileSync(join(FOLDER, name), 'utf8').replace(/\/\*[\s\S]*?\*\//g, '');
      const found = [...source.matchAll(/@media \(prefers-color-scheme: \w+\) \{\s*:root \{([^{}]*)\}\s*\}/g)];
      // Each use of the scheme is a block of this form.
      expect([name, found.length]).toEqual([name, source.split('prefers-color-scheme').length - 1]);
      return found.map(([, declarations]) => `${declarations}`);
    });
    const declared = blocks.flatMap((block) => block.split(';').map((one) => one.trim())).filter(Boolean);
    expect(declared.length).toBeGreaterThan(10);
    for (const one of declared) expect(one).toMatch(/^--[\w-]+: (#[0-9a-f]{3,8}|rgb\([^()]*\))$/);
  });
});
