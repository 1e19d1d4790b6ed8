/**
 * What a busy machine may add to a time that a test bounds, in milliseconds: enough for other work on every core, and far less than a call
 * without a time-out of its own would take.
 */
export const SLACK_MS = 5000;
