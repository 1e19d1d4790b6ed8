import type { Socket } from 'node:net';
import { describeFailure, ExchangeFailed } from '../client/failure.ts';

/** Waits for the socket's event. An error, a close or an abort before it destroys the socket. Rejects with ExchangeFailed or the signal's reason. */
export function opened<T extends Socket>(
  socket: T,
  event: 'connect' | 'secureConnect',
  signal: AbortSignal,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => socket.destroy(signal.reason);
    const onError = (error: Error) => fail(signal.aborted ? signal.reason : describeFailure(error, false));
    const onClose = () => fail(new ExchangeFailed('connecting', 'the connection was lost'));
    const settle = () => {
      signal.removeEventListener('abort', onAbort);
      socket.off('error', onError).off('close', onClose);
      // Without a listener an error would end the process. The caller adds its own.
      socket.on('error', () => undefined);
    };
    const fail = (error: unknown) => {
      settle();
      reject(error);
    };
    socket.once(event, () => {
      settle();
      resolve(socket);
    });
    socket.once('error', onError).once('close', onClose);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
  });
}
