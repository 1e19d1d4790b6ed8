import fastify from 'fastify';

// The yardstick: Fastify as it comes, answering a small JSON object.
const app = fastify();
app.get('/hello', async () => ({ hello: 'world' }));
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
