package envelope

import "google.golang.org/protobuf/encoding/protowire"

// kind is a type of ferry.proto, and with it how a value travels.
type kind uint8

const (
	kindUint32 kind = iota
	kindUint64
	kindInt32
	kindInt64
	kindSint32
	kindBool
	kindDouble
	kindFixed32
	kindSfixed64
	kindString
	kindBytes
	kindHeaders
	kindInt64s
	kindMessage
)

var kinds = [...]struct {
	proto string
	wire  protowire.Type
}{
	kindUint32:   {"uint32", protowire.VarintType},
	kindUint64:   {"uint64", protowire.VarintType},
	kindInt32:    {"int32", protowire.VarintType},
	kindInt64:    {"int64", protowire.VarintType},
	kindSint32:   {"sint32", protowire.VarintType},
	kindBool:     {"bool", protowire.VarintType},
	kindDouble:   {"double", protowire.Fixed64Type},
	kindFixed32:  {"fixed32", protowire.Fixed32Type},
	kindSfixed64: {"sfixed64", protowire.Fixed64Type},
	kindString:   {"string", protowire.BytesType},
	kindBytes:    {"bytes", protowire.BytesType},
	kindHeaders:  {"map<string, bytes>", protowire.BytesType},
	kindInt64s:   {"int64", protowire.BytesType}, // repeated, packed
	kindMessage:  {"message", protowire.BytesType},
}

// Field numbers of Message, which are also the order of writing, but for numCRC.
const (
	numVersion = iota + 1
	numIDUUID
	numID
	numOwnID
	numTopic
	numKey
	numContentTypeCode
	numContentType
	numHeaders
	numPriority
	numPublishedAt
	numDelay
	numTTL
	numBody
	numCRC // the same in DeadLetter: see seal and unseal
	numAt
	numDedupID
	numDedupWindow
	numMaxAttempts
	numRetry
)

// Field numbers of RetryPolicy.
const (
	numDelays = iota + 1
	numBase
	numFactor
	numCap
	numNoJitter
	numMaxElapsed
)

// field is one row of a message of ferry.proto; its number is its place in the table, from 1.
type field struct {
	name string // in ferry.proto
	kind kind
	// stream and kafka are the names as a Redis stream field and as a Kafka header. Empty where there is none.
	stream, kafka string
}

// table is one message of ferry.proto.
type table []field

// The one place that says how a field of a message is called, numbered and typed, wherever it is stored.
var messageFields = table{
	{"version", kindUint32, "v", "ferry"},
	{"id_uuid", kindBytes, "id", "ferry"},
	{"id", kindString, "id", "ferry"},
	{"own_id", kindBool, "own", "ferry-own-id"},
	{"topic", kindString, "topic", "ferry-topic"},
	{"key", kindString, "key", ""},
	{"content_type_code", kindUint32, "ct", "ferry-content-type"},
	{"content_type", kindString, "ct", "ferry-content-type"},
	{"headers", kindHeaders, "", ""},
	{"priority", kindSint32, "pri", "ferry-priority"},
	{"published_at_ns", kindSfixed64, "pub", "ferry-published-at"},
	{"delay_ns", kindInt64, "delay", "ferry-delay"},
	{"ttl_ns", kindInt64, "ttl", "ferry-ttl"},
	{"body", kindBytes, "body", ""},
	{"crc", kindFixed32, "crc", "ferry"},
	{"at_ns", kindSfixed64, "at", "ferry-at"},
	{"dedup_id", kindString, "dedup", "ferry-dedup-id"},
	{"dedup_window_ns", kindInt64, "window", "ferry-dedup-window"},
	{"max_attempts", kindInt64, "max", "ferry-max-attempts"},
	{"retry", kindMessage, "retry", "ferry-retry"},
}

var retryFields = table{
	{name: "delays_ns", kind: kindInt64s},
	{name: "base_ns", kind: kindInt64},
	{name: "factor", kind: kindDouble},
	{name: "cap_ns", kind: kindInt64},
	{name: "no_jitter", kind: kindBool},
	{name: "max_elapsed_ns", kind: kindInt64},
}

// An entry of a protobuf map.
var headerFields = table{
	{name: "key", kind: kindString},
	{name: "value", kind: kindBytes},
}

var deadLetterFields = table{
	{name: "version", kind: kindUint32},
	{name: "message", kind: kindMessage},
	{name: "reason", kind: kindBytes},
	{name: "error", kind: kindBytes},
	{name: "fingerprint", kind: kindBytes},
	{name: "stack", kind: kindBytes},
	{name: "history", kind: kindMessage},
	{name: "origin", kind: kindMessage},
	{name: "attempts", kind: kindInt64},
	{name: "deliveries", kind: kindInt64},
	{name: "recoverable", kind: kindBool},
	{name: "action", kind: kindBytes},
	{name: "rounds", kind: kindInt64},
	{name: "died_at_ns", kind: kindSfixed64},
	{name: "crc", kind: kindFixed32},
}

var originFields = table{
	{name: "topic", kind: kindString},
	{name: "group", kind: kindString},
	{name: "partition", kind: kindInt32},
	{name: "pos", kind: kindUint64},
	{name: "sub", kind: kindUint64},
	{name: "instance", kind: kindString},
}

var failureFields = table{
	{name: "at_ns", kind: kindSfixed64},
	{name: "instance", kind: kindString},
	{name: "attempt", kind: kindInt64},
	{name: "duration_ns", kind: kindInt64},
	{name: "reason", kind: kindBytes},
	{name: "error", kind: kindBytes},
	{name: "stack", kind: kindBytes},
}

var historyFields = table{
	{name: "failures", kind: kindMessage},
}
