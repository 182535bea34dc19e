package open

import (
	"slices"
	"strings"
)

// option is one parameter of a URL. docs/urls.md is made from these tables, and so are the hints of errors.
type option struct{ name, value, what string }

// kind is what the URLs of one broker look like, and what they take.
type kind struct {
	name    string // of the driver, and of its first scheme
	title   string
	forms   []string
	options []option
	// connection are those that the connection to the server takes, besides.
	connection []option
	// spool are those of a spool in front of a broker that can be away.
	spool []option
}

const (
	number   = "a number"
	bytes    = "bytes"
	duration = "a duration, `3s`"
	truth    = "`true` or `false`"
	file     = "a file (PEM)"
	word     = "a name"
)

var (
	maxBody  = option{"max_body", bytes, "the largest body. Defaults to 4 MiB"}
	insecure = option{"insecure", truth,
		"says that a password may go to another host without TLS, so that nobody is warned of it"}
	strict = option{"strict", truth,
		"refuses a server whose settings may lose messages, instead of a warning in the log"}
	prefix = option{"prefix", word, "begins every key, and so separates namespaces on one server. Defaults to `ferry`"}
)

// redisConnection is read by the driver itself.
var redisConnection = []option{
	{"pool", number, "connections to each server. Defaults to 10 for each processor"},
	{"timeout", duration, "for connecting, reading and writing"},
	{"protocol", "`2` or `3`", "of the server. Defaults to 3"},
	{"sentinel_user", word, "at the sentinels, if they ask for one"},
	{"sentinel_password", "a password", "at the sentinels"},
	{"ca", file, "over TLS: whom to trust, instead of the system's authorities"},
	{"cert", file, "over TLS: the certificate of this program, with `key`"},
	{"key", file, "over TLS: the key of `cert`"},
	{"server_name", word, "over TLS: the name that the server's certificate must have, if not that of the host"},
}

var kinds = []kind{
	{
		name: "memory", title: "Memory", forms: []string{"memory://"},
		options: []option{
			{"max_messages", number, "the most messages in all topics together. Defaults to 10 million"},
			maxBody,
		},
	},
	{
		name: "disk", title: "Disk", forms: []string{"disk:///absolute/path", "disk://./relative/path"},
		options: []option{
			{"sync", "`always`, or a duration",
				"when what is written is forced to the disk: before a publish is acknowledged, or so often. Defaults to `always`"},
			{"reserve", bytes, "how much of the disk stays free; with less, publishing answers `ErrFull`. Defaults to 256 MiB"},
			{"create", truth, "whether a store is made where there is none. Defaults to `true`, but not in commands that only " +
				"look"},
			{"max_messages", number, "the most messages in all topics together. Defaults to 50 million"},
			maxBody,
		},
	},
	{
		name: "redis", title: "Redis",
		forms: []string{"redis://user:password@host:6379/0", "rediss://host (TLS)", "redis+sentinel://h1,h2/primary",
			"redis+cluster://h1,h2"},
		options: []option{
			prefix,
			{"shards", number, "over how many hash slots a new topic is spread. Defaults to 1"},
			strict, maxBody, insecure,
		},
		connection: redisConnection, spool: spoolOptions,
	},
	{
		name: "redisstream", title: "Redis Streams",
		forms: []string{"redisstream://host:6379/0", "redisstreams://host (TLS)", "redisstream+sentinel://h1,h2/primary",
			"redisstream+cluster://h1,h2"},
		options: []option{
			prefix,
			{"partitions", number, "how many streams a new topic has. Defaults to 8"},
			{"window", number, "how many entries a group reads ahead in each partition; priorities reach as far. Defaults to " +
				"2000"},
			strict, maxBody, insecure,
		},
		connection: redisConnection, spool: spoolOptions,
	},
	{
		name: "kafka", title: "Kafka", forms: []string{"kafka://user:password@h1:9092,h2:9092", "kafkas://h1:9092 (TLS)"},
		options: []option{
			{"namespace", word, "is put before the name of every topic and group, so that several installations share a " +
				"cluster. Defaults to none"},
			{"partitions", number, "of a new topic. Defaults to 12"},
			{"internal_partitions", number, "of a new internal topic that is shared. Defaults to 4"},
			{"replicas", number, "of new topics. Defaults to 3 where there are as many brokers"},
			{"session", duration, "how soon a consumer that died is replaced: the shortest lease, and the default. Defaults " +
				"to `6s`"},
			{"transactions", truth, "stores follow-ups in one transaction with the outcome of their parent, fires delayed " +
				"messages once whoever is killed, and allows atomic publishes"},
			{"foreign", "`accept` or `reject`",
				"what becomes of records of producers that do not know Ferry: messages, or parse errors. Defaults to `accept`"},
			{"max_body", bytes, "the largest body. Defaults to 900 KiB"},
			{"client_id", word, "names this program in the brokers' logs. Defaults to `ferry`"},
			{"rack", word, "where this program runs: what it follows is fetched from a replica in the same rack"},
			{"sasl", "`scram-sha-512`, `scram-sha-256` or `plain`",
				"how user and password are shown. Defaults to `scram-sha-512`"},
			insecure,
			{"ca", file, "over TLS: whom to trust, instead of the system's authorities"},
			{"cert", file, "over TLS: the certificate of this program, with `key`"},
			{"key", file, "over TLS: the key of `cert`"},
		},
		spool: spoolOptions,
	},
	{
		name: "ferry", title: "A server", forms: []string{"ferry://host:7070", "ferrys://host:7070 (TLS)"},
		options: []option{
			{"token_file", "a file", "holds the token; others must not be able to read it. Defaults to none: the token is in " +
				"the variable `FERRY_TOKEN`"},
			{"ca", file, "over TLS: whom to trust, instead of the system's authorities"},
			insecure,
		},
		spool: spoolOptions,
	},
}

// kindOf returns what a scheme is of: redisstreams+cluster of redisstream, for example. The zero kind takes nothing.
func kindOf(scheme string) kind {
	base, _, _ := strings.Cut(scheme, "+")
	at := slices.IndexFunc(kinds, func(k kind) bool { return base == k.name || base == k.name+"s" })
	if at < 0 {
		return kind{}
	}
	return kinds[at]
}

// optionsOf returns what the URLs of a scheme take, for hints.
func optionsOf(scheme string) string {
	k := kindOf(scheme)
	text := names(k.options)
	if len(k.connection) > 0 {
		text += ", and those of the connection: " + names(k.connection)
	}
	if len(k.spool) > 0 {
		text += "; and those of a spool: " + names(k.spool)
	}
	return text
}

func names(options []option) string {
	var all []string
	for _, o := range options {
		all = append(all, o.name)
	}
	return strings.Join(all, ", ")
}
