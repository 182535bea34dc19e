package redistest

import (
	"slices"
	"testing"
)

// Single starts one server, which ends with the test.
func Single(t testing.TB, o Options) *Server {
	t.Helper()
	s, err := StartSingle(t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		showLogs(t, s)
		s.Close()
	})
	return s
}

// Sentinel starts a set that ends with the test, as StartSentinel does.
func Sentinel(t testing.TB, o Options) *SentinelSet {
	t.Helper()
	s, err := StartSentinel(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		showLogs(t, slices.Concat(s.Nodes, s.Sentinels)...)
		s.Close()
	})
	return s
}

// Cluster starts a cluster that ends with the test, as StartCluster does.
func Cluster(t testing.TB, o Options) *ClusterSet {
	t.Helper()
	c, err := StartCluster(t.Context(), t.TempDir(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		showLogs(t, c.Nodes...)
		c.Close()
	})
	return c
}

// showLogs lets a failed test show what its servers had to say.
func showLogs(t testing.TB, servers ...*Server) {
	if t.Failed() {
		t.Log(logTails(servers))
	}
}
