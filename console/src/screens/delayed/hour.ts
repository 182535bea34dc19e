const minutes = 5;

/** Bucket is how many messages are due within five minutes of the next hour. */
export interface Bucket {
  from: number;
  to: number;
  count: number;
}

/** nextHour counts what is due in each five minutes from now on. What is overdue counts as due now. */
export function nextHour(due: string[], now: number): Bucket[] {
  const buckets = Array.from({ length: 60 / minutes }, (_, i) => ({ from: i * minutes, to: (i + 1) * minutes, count: 0 }));
  for (const at of due) {
    const bucket = buckets[Math.max(0, Math.floor((Date.parse(at) - now) / (minutes * 60_000)))];
    if (bucket) bucket.count++;
  }
  return buckets;
}
