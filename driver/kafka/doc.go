// Package kafka is the driver for Apache Kafka: retries per message with delay, order by key with many handlers for
// each partition, dead letters and delays of any length, on plain topics and consumer groups.
//
// A message is a record of the topic that bears its name: value = body, key = key, everything else = headers. A group
// is a Kafka group named "topic:group". Offsets are committed only up to the contiguous prefix of what is settled, and
// what is settled beyond it is in the commit metadata. docs/kafka.md shows the topics and the protocol.
//
// Here are the operations of the seam, a file op_* for each; change is what moving and deleting have in common, letters
// does it with many dead letters at once, log is all of driver.Log, upkeep trims and keeps groups alive. What they are
// made of is below internal, where each package knows only those before it:
//
//	record     how messages, their state and dead letters are written as records
//	offsets    what is done in a partition, and the text beside a committed offset; no I/O
//	cluster    the brokers: names, clients, storing, reading, commits, transactions, their clock
//	compacted  a compacted topic followed into memory: Table has its rows, Index only where they are; of many
//	           who change a row at the same time one may
//	registry   which topics and groups there are and how they are configured; where positions in their history are
//	delay      what is not due yet, and what is held: tiers, who owns and fires them, looking at them
//	publisher  messages into records: duplicates, bounds, one transaction for all
//	consumer   this process in its groups. Members own partitions; items are claimed, settled, diverted and committed; a
//	           view is the same for operators, joined or not
//
// Words that only this driver has:
//
//	retry log    the topic _ferry.retry.* beside a topic, for one group: what has failed, was released for later or lost,
//	             was replayed or diverted; also commands to the owner of a partition, and notices
//	item         a message that a group has not settled, in the memory of who owns its partition
//	leased       an item is, while somebody has it; held are only messages that were published so (driver.Hold)
//	diverted     items behind one of their key that waits for long go to the retry log, so that they hold up no offset
//	spilled      an item whose body is only in the retry log, because there is too much in memory
//	vouched      the coordinator has said of a member, not long ago, that it is one: its partitions are surely its own
//	visit        a look at partitions that this process does not own
//	done-set     which offsets of a partition are done (offsets.Set)
//	tally        what an owner has counted in a partition, which is committed beside the offset
//	tag          names the transaction that committed an offset, in its metadata
//	row lock     a record beside a row of a table that says who may change it
//	reservation  an id that a publish under way has: a duplicate waits for what becomes of it
//	void mark    a row beside the held messages: copies of a delayed message that were moved or deleted mean nothing
//	stand-in     a record of the retry log with what a commit would have said that brokers refused
//	notice       what a holder that lost a delivery, and lives, tells the owner of the partition: it does not count as
//	             lost
//	poll buffer  the memory of what one poll brought, which bodies share
package kafka
