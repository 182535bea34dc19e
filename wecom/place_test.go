package wecom_test

import (
	"crypto/rand"
	"strings"
	"testing"

	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

// place is an empty broker.
type place struct {
	url    string
	server server // nil: it is in the process that uses it
}

// server is the process of a broker.
type server interface {
	Kill()
	Restart() error
}

// places open brokers of every kind that survives a process.
var places = map[string]func(t *testing.T) place{
	"disk":  func(t *testing.T) place { return place{url: "disk://" + t.TempDir()} },
	"redis": func(t *testing.T) place { return redisPlace(t, "redis", "") },
	"redisstream": func(t *testing.T) place {
		return redisPlace(t, "redisstream", "?partitions=4")
	},
	"kafka": kafkaPlace,
}

func redisPlace(t *testing.T, scheme, options string) place {
	s := redistest.Single(t, redistest.Options{AOF: "everysec"})
	return place{url: strings.Replace(s.URL(), "redis", scheme, 1) + options, server: s}
}

// kafkaPlace is a namespace of a broker that the tests share: to start one takes seconds. In a torture, where it is
// killed, each has its own.
func kafkaPlace(t *testing.T) place {
	start := kafkatest.Shared
	if tortured() > 0 {
		start = kafkatest.Single
	}
	b := start(t).Brokers[0]
	return place{server: b, url: "kafka://" + b.Addr() + "/?namespace=w" + strings.ToLower(rand.Text()) +
		".&partitions=4&internal_partitions=1"}
}
