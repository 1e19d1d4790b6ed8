import fastify from 'fastify';

interface Twin {
  path: string;
  status: number;
  headers: Record<string, string>;
  body: string;
}

// The baseline: plain Fastify. It answers a small JSON object, and prepared answers of the same size as ours.
const app = fastify();
app.get('/hello', async () => ({ hello: 'world' }));
for (const { path, status, headers, body } of JSON.parse(process.env.TWINS ?? '[]') as Twin[]) {
  app.get(path, (_request, reply) => {
    reply.code(status).headers(headers).send(body);
  });
}
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
