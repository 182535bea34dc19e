// Package kafka is the driver for Apache Kafka: retries per message with delay, order by key with many handlers for
// each partition, dead letters and delays of any length, on plain topics and consumer groups.
//
// A message is a record of the topic that bears its name: value = body, key = key, everything else = headers. A group
// is a Kafka group named "topic:group". Offsets are committed only up to the contiguous prefix of what is settled, and
// what is settled beyond it is in the commit metadata. docs/kafka.md shows the topics and the protocol.
//
// Where things are:
//
//	driver        New, Close, capabilities; open makes a Broker; reach finds the brokers and checks them
//	topics        creating topics; produce stores records, compress decides which batches are worth it
//	table         a compacted topic followed into memory: registry, marks, side logs; index knows only where its rows are
//	contest       of many who change a row at the same time, one may; late makes void what is stored after that
//	registry      which topics and groups there are, and how they are configured; create makes them
//	publish, call messages into records, those of one call together; atomic stores them in one transaction
//	dedup, bound  which ids this process has published, and whether a topic is full
//	member        this process in a group, membership as who the coordinator knows it; assign and vouch: which partitions are its own, and whether they still are;
//	              drain and balance: which it gives up while it ends
//	partition     one owned partition, with its items: what is fetched, and what is done
//	side          the side log of a partition, ends what has ended there; park moves followers of a failing key there, and bounds memory
//	done, commit  the done-set, and how it is committed, truncate notices logs that have lost their ends; metadata and tally are what is committed beside
//	queue, item   lanes and keys in memory; loan has their bodies, lease has claims, clock rings what time brings
//	settle, emit  outcomes and follow-ups: stored first, done after; transact does both in one step, by the transactor of their partition
//	delay*        what is not due yet: tiers, who owns and fires them (delay_transact in one step), scanning them; held has marks and held messages
//	brokerclock   what time it is at the brokers
//	dead          dead letters; letters moves and deletes many at once, living says whose message lives; quarantine keeps records that cannot be decoded
//	view          looking at a group, joined or not; inspect, browse, get, remove, move, reset use it
//	log*          partitions as they are: how far groups have come, what is pending, ranges, replays of what is kept
//	command       changes asked for by processes that do not own the partition
//	upkeep        trimming, and groups kept alive; diagnose is for ferry doctor
package kafka
