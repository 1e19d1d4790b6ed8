import { expect, test } from 'vitest';
import { selftestFail } from '../../../src/endpoints/selftest.ts';
import { run, useFixture } from './fixture.ts';

const given = useFixture();

test('selftest/fail always fails, uncharged', async () => {
  await expect(run(selftestFail, given().sources)).rejects.toMatchObject({
    status: 500,
    code: 'selftest_failed',
    charged: false,
  });
});
