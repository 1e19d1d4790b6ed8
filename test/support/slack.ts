/**
 * Milliseconds that a busy machine may add to a time that a test limits.
 * It is enough for other work on every core, and far less than a call without its own time-out would take.
 */
export const SLACK_MS = 5000;
