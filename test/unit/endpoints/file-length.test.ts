import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';

const FOLDER = join(import.meta.dirname, '../../../src/endpoints');

describe('each file of an endpoint', () => {
  const files = readdirSync(FOLDER).filter((file) => file.endsWith('.ts'));

  it('was found', () => {
    expect(files.length).toBeGreaterThan(40);
  });

  it.each(files)('%s is read in a minute: it has fewer than 200 lines', (file) => {
    expect(readFileSync(join(FOLDER, file), 'utf8').split('\n').length - 1).toBeLessThan(200);
  });
});
