// Package archtest keeps the architecture and the habits of the repository as tests, so that they cannot rot.
//
// The rules are the tables in this file. Everything else here reads packages and sources and compares.
package archtest

// Module is the path of the root package; the tables name packages relative to it, with "." for the root itself.
const Module = "github.com/ferrymq/ferry"

// Layer says what some packages may import of ours. Patterns: "." the root, "a" exactly a, "a/*" the children of a,
// "a/..." a and all below it, "..." everything.
type Layer struct {
	Packages []string
	// May lists what their code may import.
	May []string
	// Tests lists what their tests may import besides. Nil: everything.
	Tests []string
	// Why is shown when the rule is broken.
	Why string
}

// Layers go from the seam upwards. The first row that matches a package counts; one that matches none is an error.
// Packages under cmd are never imported from outside cmd, whatever a row says.
var Layers = []Layer{
	{
		Packages: []string{"driver", "console/..."},
		Why:      "the seam and the console stand alone: a driver author reads one package, the console knows only HTTP",
	},
	{
		Packages: []string{"codec/..."},
		May:      []string{"codec/..."},
		Why:      "codecs turn values into bytes; they know nothing of messages",
	},
	{
		Packages: []string{"."},
		May:      []string{"driver", "codec", "internal/..."},
		Why:      "the root is what every program links: no concrete driver, no runtime",
	},
	{
		Packages: []string{"internal/..."},
		May:      []string{"driver", "internal/..."},
		Why:      "internal packages are leaves below the seam's users",
	},
	{
		Packages: []string{"driver/drivertest"},
		May:      []string{"driver", "internal/..."},
		Tests:    []string{"driver/drivertest", "driver/memory"},
		Why:      "the conformance suite knows the seam and no driver",
	},
	{
		Packages: []string{"driver/kafka/internal/record", "driver/kafka/internal/offsets"},
		May:      []string{"driver", "internal/..."},
		Why:      "how things are written on Kafka is known without a connection",
	},
	{
		Packages: []string{"driver/kafka/internal/cluster"},
		May:      []string{"driver", "internal/...", "driver/kafka/internal/record", "driver/kafka/internal/offsets"},
		Why:      "the connection to the brokers knows nothing of topics and groups",
	},
	{
		Packages: []string{"driver/kafka/internal/compacted"},
		May: []string{"driver", "internal/...", "driver/kafka/internal/record", "driver/kafka/internal/offsets",
			"driver/kafka/internal/cluster"},
		Why: "tables know the connection, and not who uses them",
	},
	{
		Packages: []string{"driver/kafka/internal/registry", "driver/kafka/internal/delay",
			"driver/kafka/internal/publisher"},
		May: []string{"driver", "internal/...", "driver/kafka/internal/record", "driver/kafka/internal/offsets",
			"driver/kafka/internal/cluster", "driver/kafka/internal/compacted", "driver/kafka/internal/registry",
			"driver/kafka/internal/delay"},
		Why: "what is stored and published does not know who consumes it",
	},
	{
		Packages: []string{"driver/kafka/internal/consumer"},
		May:      []string{"driver", "internal/...", "driver/kafka/internal/..."},
		Why:      "groups are the last package of Kafka below the driver itself",
	},
	{
		Packages: []string{"driver/kafka"},
		May:      []string{".", "driver", "internal/...", "driver/kafka/internal/..."},
		Why:      "a driver never imports another driver nor anything above the seam",
	},
	{
		Packages: []string{"driver/*"},
		May:      []string{".", "driver", "internal/..."},
		Why:      "a driver never imports another driver nor anything above the seam",
	},
	{
		Packages: []string{"worker"},
		May:      []string{".", "driver", "codec", "internal/..."},
		Why:      "the runtime works on every driver, so it knows none",
	},
	{
		Packages: []string{"ferrytest"},
		May:      []string{".", "driver", "driver/memory", "worker", "internal/..."},
		Why:      "users' tests run on the memory driver",
	},
	{
		Packages: []string{"spool/spooldisk"},
		May:      []string{".", "driver", "driver/disk", "spool", "internal/..."},
		Why:      "it puts a spool into a directory; the spool itself knows no driver",
	},
	{
		Packages: []string{"guard/...", "deadletter/...", "monitor", "spool/...", "notify/...", "alert/...", "cluster/...",
			"wecom/...", "admin/...", "auth/...", "schedule", "result", "outbox", "operation/...", "transaction", "plugin"},
		May: []string{".", "driver", "codec", "worker", "internal/...",
			"guard/...", "deadletter/...", "monitor", "spool/...", "notify/...", "alert/...", "cluster/...", "wecom/...",
			"admin/...", "auth/...", "schedule", "operation/...", "result", "transaction"},
		Why: "portable features are written once, above the seam, and know no driver and no format but JSON",
	},
	{
		Packages: []string{"server/config"},
		May:      []string{"driver", "auth/...", "admin", "server", "wecom", "notify/...", "alert"},
		Why:      "a configuration names what the server and its handlers take, and opens nothing",
	},
	{
		Packages: []string{"server/..."},
		May:      []string{".", "driver", "auth/...", "cluster", "monitor", "server/...", "internal/..."},
		Why:      "the server knows who asks and mounts what it is given: what is mounted does not know it",
	},
	{
		Packages: []string{"gateway"},
		May:      []string{".", "driver", "codec/...", "worker", "auth", "result", "cluster", "guard/...", "internal/..."},
		Why:      "the gateway is a broker over HTTP: it knows no driver, and nothing of the server that serves it",
	},
	{
		Packages: []string{"telemetry/..."},
		May: []string{".", "driver", "worker", "internal/...", "guard/...", "deadletter", "monitor", "cluster", "spool",
			"wecom", "telemetry/..."},
		Why: "telemetry is told by what it watches, and nothing that is watched knows of it",
	},
	{
		Packages: []string{"open"},
		May:      []string{".", "driver", "driver/*", "spool/...", "guard/...", "internal/..."},
		Why: "open chooses a driver by URL, with a spool in front where one is asked for, or the guard store beside " +
			"it, and does nothing else",
	},
	{
		Packages: []string{"cmd/...", "examples/...", "test/...", "sdk"},
		May:      []string{"..."},
		Why:      "programs tie everything together",
	},
}

// Light are the packages every program links, with the only third-party packages they may bring along. What those
// need themselves is theirs.
var Light = []struct{ Packages, Links []string }{
	{
		Packages: []string{".", "driver", "codec", "worker", "cluster", "result", "outbox", "operation",
			"transaction", "plugin"},
	},
	{
		Packages: []string{"driver/memory", "spool"},
		Links:    []string{"google.golang.org/protobuf/encoding/protowire"}, // a leaf of 3 packages, without reflection
	},
	{
		Packages: []string{"guard"}, // the Redis store is guard/redis
	},
	{
		Packages: []string{"auth"},
		Links:    []string{"golang.org/x/crypto/argon2"}, // the hash of passwords, which the standard library has not
	},
	{
		Packages: []string{"codec/cloudevents", "codec/codectest", "codec/encrypt", "codec/msgpack/value"},
	},
	{
		Packages: []string{"codec/compress"},
		Links: []string{"github.com/klauspost/compress/gzip", "github.com/klauspost/compress/s2",
			"github.com/klauspost/compress/zstd",
			"github.com/pierrec/lz4/v4"},
	},
	{
		Packages: []string{"codec/protobuf"},
		Links:    []string{"google.golang.org/protobuf/proto", "google.golang.org/protobuf/encoding/protowire"},
	},
	{
		Packages: []string{"codec/msgpack"},
		Links:    []string{"github.com/ugorji/go/codec"},
	},
	{
		Packages: []string{"codec/cbor"},
		Links:    []string{"github.com/fxamacker/cbor/v2"},
	},
	{
		Packages: []string{"codec/registry"},
		Links:    []string{"github.com/twmb/franz-go/pkg/sr"},
	},
	{
		Packages: []string{"codec/avro"},
		Links:    []string{"github.com/twmb/avro", "github.com/twmb/franz-go/pkg/sr"},
	},
	{
		Packages: []string{"schedule"},
		Links:    []string{"github.com/netresearch/go-cron"}, // one package without dependencies
	},
}

// badNames say nothing about what a package is for.
var badNames = []string{"util", "utils", "common", "helper", "helpers", "manager", "misc", "shared"}

// Exceptions to the habits: patterns of packages as in a Layer, each with its reason.
var (
	// initAllowed may have an init function.
	initAllowed = map[string]string{}

	// sleepAllowed may call time.Sleep outside tests.
	sleepAllowed = map[string]string{
		"driver/drivertest": "is test code: it lets virtual time pass, or polls a real backend",
		"ferrytest":         "is test code: it lets virtual time pass",
		"guard/guardtest":   "is test code: it lets virtual time pass, or waits for a real store",
		"bench/...":         "measures: handlers that take time are what is measured",
	}

	// leakAllowed need no goleak: they start no goroutine.
	leakAllowed = map[string]string{
		"bench/...":         "measures, and is a module of its own",
		"internal/archtest": "reads files",
		"examples/start":    "shows a reader the smallest test; ferrytest looks for what is left running",
		"internal/uuid7":    "computes ids",

		"internal/privatefile": "opens files",
	}
)
