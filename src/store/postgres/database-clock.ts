/** The database's own clock in SQL, which all instances share: Unix milliseconds, also while a transaction runs. */
export const NOW = '(extract(epoch FROM clock_timestamp()) * 1000)::BIGINT';
