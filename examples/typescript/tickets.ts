/**
 * A worker that prints tickets: a retry, a follow-up, a dead letter, and its replay.
 *
 * Start `ferry dev` in one terminal, and in another one, with the token that it shows:
 *
 *     export FERRY_BROKER=ferry://127.0.0.1:7070 FERRY_TOKEN=...
 *     (cd sdk/typescript && npm ci && npm run build)
 *     cd examples/typescript && npm install && npm start
 */

import { Client, Dead, type Delivery, Message, Retry, Worker } from "ferrymq";

interface Ticket {
  number: number;
}

const client = new Client();

/** work prints tickets until the last one has been tried. */
async function work(paper: boolean): Promise<void> {
  const worker = new Worker<Ticket>(client, "tickets", (ticket: Delivery<Ticket>) => {
    const { number } = ticket.value;
    if (number === 1 && ticket.attempt === 1) {
      console.log("ticket 1: the printer is busy");
      throw new Retry("100ms");
    }
    if (number === 3) {
      worker.stop();
      if (!paper) {
        console.log("ticket 3: there is no paper");
        throw new Dead("no_paper", "the tray is empty");
      }
    }
    console.log(`ticket ${number} is printed, attempt ${ticket.attempt}`);
    ticket.emit("receipts", { ticket: number }); // with the acknowledgement, or not at all
  });
  await worker.run();
}

// One key: they are printed one after the other, and a retry holds up those behind it.
await client.publishMany("tickets", [1, 2, 3].map((number) => new Message({ number }, { key: "printer" })));
await work(false);
for await (const letter of client.deadLetters("tickets", { where: 'reason == "no_paper"' })) {
  console.log(`ticket ${(letter.value as Ticket).number} is dead: ${letter.reason}: ${letter.error}`);
  await client.replay(letter);
}
await work(true);
const [receipt] = await client.receive<{ ticket: number }>("receipts", { max: 1 });
console.log(`the first receipt is for ticket ${receipt?.value.ticket}`);
