"""A worker that prints tickets: a retry, a follow-up, a dead letter, and its replay.

Start `ferry dev` in one terminal, and in another one, with the token that it shows:

    export FERRY_BROKER=ferry://127.0.0.1:7070 FERRY_TOKEN=...
    PYTHONPATH=sdk/python/src python3 examples/python/tickets.py
"""

from ferrymq import Client, Dead, Delivery, Message, Retry, Worker


def work(client: Client, paper: bool) -> None:
    """Print tickets until the last one has been tried."""

    def print_ticket(ticket: Delivery) -> None:
        number = ticket.value["number"]
        if number == 1 and ticket.attempt == 1:
            print("ticket 1: the printer is busy")
            raise Retry(after=0.1)
        if number == 3:
            worker.stop()
            if not paper:
                print("ticket 3: there is no paper")
                raise Dead("no_paper", "the tray is empty")
        print(f"ticket {number} is printed, attempt {ticket.attempt}")
        ticket.emit("receipts", {"ticket": number})  # with the acknowledgement, or not at all

    worker = Worker(client, "tickets", print_ticket)
    worker.run()


def main() -> None:
    with Client() as client:
        # One key: they are printed one after the other, and a retry holds up those behind it.
        client.publish_many("tickets", [Message({"number": n}, key="printer") for n in (1, 2, 3)])
        work(client, paper=False)
        for letter in client.dead_letters("tickets", where='reason == "no_paper"'):
            print(f"ticket {letter.value['number']} is dead: {letter.reason}: {letter.error}")
            client.replay(letter)
        work(client, paper=True)
        receipts = client.receive("receipts", max=1)
        print(f"the first receipt is for ticket {receipts[0].value['ticket']}")


if __name__ == "__main__":
    main()
