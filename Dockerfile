# The build stage installs the development dependencies, then prunes them. The `node` package is one, so the image's own Node runs the service.
FROM node:24.21.0-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY src ./src
COPY cli ./cli
COPY scripts ./scripts
RUN npm run build && npm prune --omit=dev --include=prod

FROM node:24.21.0-slim
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4021 DATA_DIR=/data MALLOC_TRIM_THRESHOLD_=1048576
WORKDIR /app
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY package.json ./
# Migrations, the pages' files, and the sources of the operator's tools.
COPY src ./src
# The operator's tools: npm run ledger, npm run backup.
COPY scripts/ledger.ts scripts/backup.ts ./scripts/
COPY scripts/lib ./scripts/lib
COPY cli ./cli
RUN mkdir /data && chown node:node /data
USER node
VOLUME /data
EXPOSE 4021
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}/livez`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# Not through npm: signals reach the process itself, which stops within 10 s. The options are those of `npm start`, and so is glibc's trim threshold above.
CMD ["node", "--max-semi-space-size=16", "--heap-growing-percent=30", "--v8-pool-size=2", "dist/server.js"]
