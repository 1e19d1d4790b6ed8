import { expect, test } from 'vitest';
import { AppError, UpstreamFailed, withMembers } from '../../../src/errors.ts';
import { problem } from '../../../src/mcp/results.ts';

test('a problem has the members of its error, which never replace the standard ones', () => {
  const failed = withMembers(new UpstreamFailed('page.example', 'timed out'), {
    up: false,
    status: 200,
    charged: true,
  });
  expect(failed).toBeInstanceOf(AppError);
  expect(problem(failed, 'id').structuredContent).toEqual({
    ...{ up: false, status: 502, code: 'upstream_failed', charged: false },
    ...{ detail: 'page.example: timed out', requestId: 'id' },
  });
});
