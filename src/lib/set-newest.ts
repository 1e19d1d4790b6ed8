/**
 * Sets a key as the newest of a map, which stays in the order of setting. When the map then has more than `most` keys, the oldest is deleted, so that a
 * map whose keys third parties choose is bounded.
 */
export function setNewest<K, V>(map: Map<K, V>, key: K, value: V, most: number): void {
  map.delete(key);
  map.set(key, value);
  if (map.size <= most) return;
  for (const oldest of map.keys()) {
    map.delete(oldest);
    return;
  }
}
