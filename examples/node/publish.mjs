// Publishes on Tristore's bus from Node: `npm install`, then
//   TRISTORE_REDIS_URL=redis://… node publish.mjs
// Prints the id of each event it has handed over.
import { randomUUID } from "node:crypto";
import { Queue } from "bullmq";
import { Redis } from "ioredis";

const address = process.env.TRISTORE_REDIS_URL ?? "redis://127.0.0.1:6379/0";
const name = process.env.TRISTORE_EVENTS__QUEUE ?? "tristore_event_ingress";

// The id is chosen before the first try: sent again after an error, the event is a duplicate and
// not a second event.
function event(type, payload, fields = {}) {
  return {
    id: randomUUID(),
    type,
    source: "node.example",
    occurredAt: new Date().toISOString(),
    payload,
    ...fields,
  };
}

// Stored jobs leave Redis; a job that failed stays, because the platform sends it again.
const keep = { removeOnComplete: true, removeOnFail: false };

const connection = new Redis(address);
const queue = new Queue(name, { connection });
try {
  // One event: a job named "event" with the envelope as its data.
  const one = event("example.order.placed", { order: 7 }, { correlationId: "run-7" });
  await queue.add("event", one, keep);
  console.log(one.id);

  // Many events: one job named "events", much faster than one job each.
  const many = [1, 2, 3].map((line) => event("example.order_line.placed", { order: 7, line }));
  await queue.add("events", { events: many }, keep);
  many.forEach(({ id }) => console.log(id));
} finally {
  await queue.close();
  await connection.quit();
}
