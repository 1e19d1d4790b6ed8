import fastify from 'fastify';

interface Twin {
  path: string;
  status: number;
  headers: Record<string, string>;
  body: string;
}

// The yardstick: Fastify as it comes, answering a small JSON object, and answers of the same size as ours with nothing done for them.
const app = fastify();
app.get('/hello', async () => ({ hello: 'world' }));
for (const { path, status, headers, body } of JSON.parse(process.env.TWINS ?? '[]') as Twin[]) {
  app.get(path, (_request, reply) => {
    reply.code(status).headers(headers).send(body);
  });
}
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
