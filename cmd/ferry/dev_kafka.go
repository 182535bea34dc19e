package main

import (
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

// fakeKafka is a Kafka broker inside this process, for development: everything is gone when it ends.
type fakeKafka struct{ cluster *kfake.Cluster }

// wantsFakeKafka reports whether --broker says Kafka, and not where.
func wantsFakeKafka(url string) bool {
	scheme, rest, _ := strings.Cut(withScheme(url), "://")
	where, _, _ := strings.Cut(rest, "?")
	return strings.EqualFold(scheme, "kafka") && strings.Trim(where, "/") == ""
}

// startFakeKafka starts it on a free port of this machine, and returns the URL with its address.
func startFakeKafka(url string) (*fakeKafka, string, error) {
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		return nil, "", failure("no broker could be started inside this process: "+err.Error(),
			"give the address of a real one: --broker kafka://host:9092")
	}
	_, rest, _ := strings.Cut(withScheme(url), "://")
	_, query, given := strings.Cut(rest, "?")
	full := "kafka://" + strings.Join(c.ListenAddrs(), ",")
	if given {
		full += "?" + query
	}
	return &fakeKafka{c}, full, nil
}

func (f *fakeKafka) close() { f.cluster.Close() }
