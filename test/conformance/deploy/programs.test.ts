import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { programsMissing, runProgram } from '../../support/deploy/programs.ts';
import { configurationFor } from '../../support/deploy/prometheus.ts';
import { readText } from '../../support/documents.ts';
import { ROOT } from '../../support/service/shown-code.ts';

// The files of docs/deploy as the programs read them: HAProxy, systemd and Prometheus of Debian. A program that is not installed is skipped, and the test's
// name says so; SLOW=1 installs it (test/support/deploy/programs.ts).

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-deploy-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A file in the folder of this test, and its path. */
function laid(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

const because = (missing: string | null): string => (missing === null ? '' : ` (skipped, ${missing})`);

const noHaproxy = programsMissing('haproxy');
describe.skipIf(noHaproxy !== null)(`haproxy -c${because(noHaproxy)}`, () => {
  const config = readText('docs/deploy/haproxy.cfg');
  const check = (text: string) => runProgram('haproxy', ['-c', '-f', laid('haproxy.cfg', text)]);

  test('takes the file, and warns only that the instances have no address yet', async () => {
    const { code, output } = await check(config);
    expect(code, output).toBe(0);
    const warnings = output.match(/^\[(?:WARNING|ALERT)\].*$/gm) ?? [];
    expect(warnings.filter((line) => !/could not resolve address '[ab]', disabling server/.test(line))).toEqual([]);
  });

  test('would find a fault', async () => {
    expect(await check(config.replace('balance leastconn', 'balance fairly'))).toMatchObject({ code: 1 });
  });
});

const noSystemd = programsMissing('systemd-analyze');
describe.skipIf(noSystemd !== null)(`systemd-analyze${because(noSystemd)}`, () => {
  // A program that is not there would be a fault.
  const unit = readText('docs/deploy/percall.service').replaceAll('/opt/percall', ROOT.replace(/\/$/, ''));
  const verify = (name: string, text: string, asked = name) => {
    laid(name, text);
    return runProgram('systemd-analyze', ['verify', '--man=no', join(folder, asked)]);
  };

  test.each([
    ['percall.service', 'percall.service'],
    ['percall@.service', 'percall@a.service'],
  ])('finds no fault in the unit as %s', async (name, asked) => {
    expect(await verify(name, unit, asked)).toEqual({ code: 0, output: '' });
  });

  test('would find a fault', async () => {
    const { output } = await verify('percall.service', unit.replace('ProtectSystem=strict', 'ProtectSystem=very'));
    expect(output).toContain('Failed to parse protect system value');
  });

  test('gives the unit an exposure below 1.5 of 10, and one without its limits a high one', async () => {
    const exposed = (text: string) =>
      runProgram('systemd-analyze', ['security', '--offline=true', '--threshold=15', laid('percall.service', text)]);
    const { code, output } = await exposed(unit);
    expect(code, output).toBe(0);
    const open = unit.replace(/^(Protect|Private|Restrict|System|Capability).*$/gm, '');
    expect(await exposed(open)).toMatchObject({ code: 1 });
  });
});

const noPromtool = programsMissing('promtool');
describe.skipIf(noPromtool !== null)(`promtool check${because(noPromtool)}`, () => {
  test('takes the configuration and the alerts', async () => {
    // As the file is, but for the places of its secret and its rules.
    const config = configurationFor(['a:4021', 'b:4021'], laid('token', 'x'));
    const { code, output } = await runProgram('promtool', ['check', 'config', laid('all.yml', JSON.stringify(config))]);
    expect(code, output).toBe(0);
    expect(output).toMatch(/SUCCESS: \d+ rules found/);
  });

  test('would find a fault in an expression', async () => {
    const alerts = readText('docs/deploy/alerts.yml');
    const broken = alerts.replace('channels_refused > 0', 'channels_refused >> 0');
    expect(broken).not.toBe(alerts);
    expect(await runProgram('promtool', ['check', 'rules', laid('alerts.yml', broken)])).toMatchObject({ code: 1 });
  });
});
