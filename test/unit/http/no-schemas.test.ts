import Fastify from 'fastify';
import { expect, test } from 'vitest';
import { NO_SCHEMAS } from '../../../src/http/server-options.ts';

const schema = { querystring: { type: 'object', properties: { n: { type: 'integer' } } } };

test('a route without a schema is served, and one with a schema ends the start', async () => {
  const app = Fastify({ schemaController: NO_SCHEMAS });
  app.get('/plain', () => 'served');
  expect((await app.inject('/plain')).body).toBe('served');

  const wrong = Fastify({ schemaController: NO_SCHEMAS });
  wrong.get('/checked', { schema }, () => 'served');
  await expect(Promise.resolve(wrong.ready())).rejects.toThrow('no compiler');
});
