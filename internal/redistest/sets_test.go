package redistest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSentinelFailsOver(t *testing.T) {
	t.Parallel()
	start := time.Now()
	s := Sentinel(t, Options{Password: "secret"})
	t.Logf("up after %v", time.Since(start))
	if want := "redis+sentinel://:secret@" + strings.Join(s.Addrs(), ",") + "/" + SentinelName; s.URL() != want {
		t.Errorf("the URL is %s, not %s", s.URL(), want)
	}
	old := s.Nodes[0]
	must(t)(old.Command("SET", "key", "value"))
	awaitReplicated(t, s.Nodes[1])

	killed := time.Now()
	old.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	next, err := s.NextPrimary(ctx, old)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s took over after %v", next, time.Since(killed))
	if got := must(t)(next.Command("GET", "key")); got != "value" {
		t.Errorf("key = %q after the fail-over", got)
	}
	must(t)(next.Command("SET", "key", "newer"))
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := s.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("full strength after %v", time.Since(killed))
	awaitReplicated(t, old)
	if role, err := old.info("replication", "role"); role != "slave" {
		t.Errorf("the old primary came back as %s, %v", role, err)
	}
}

// awaitReplicated waits for the key that the tests write.
func awaitReplicated(t *testing.T, replica *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	if err := until(ctx, func() error {
		if r, err := replica.Command("GET", "key"); err != nil || r.Null {
			return fmt.Errorf("no key on %s: %w", replica, err)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}

func TestClusterFailsOver(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := Cluster(t, Options{AOF: "everysec"})
	t.Logf("up after %v", time.Since(start))
	if want := "redis+cluster://" + strings.Join(c.Addrs(), ","); c.URL() != want {
		t.Errorf("the URL is %s, not %s", c.URL(), want)
	}
	writeEverywhere(t, c)

	old, err := c.PrimaryOf("key0")
	if err != nil {
		t.Fatal(err)
	}
	killed := time.Now()
	old.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	next, err := c.NextPrimaryOf(ctx, "key0", old)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s took over after %v", next, time.Since(killed))
	if next == old {
		t.Error("the dead node owns the key")
	}
	writeEverywhere(t, c)
	if err := old.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	t.Logf("full strength after %v", time.Since(killed))
	writeEverywhere(t, c)
}

// writeEverywhere writes enough keys to meet every primary, and reads them back.
func writeEverywhere(t *testing.T, c *ClusterSet) {
	t.Helper()
	for _, n := range c.Nodes {
		if n.Running() {
			if info := must(t)(n.Command("CLUSTER", "INFO")); field(info, "cluster_slots_ok") != fmt.Sprint(clusterSlots) {
				t.Errorf("%s does not see all slots served:\n%s", n, info)
			}
		}
	}
	owners := map[*Server]bool{}
	for i := range 60 {
		key := fmt.Sprint("key", i)
		must(t)(c.Command("SET", key, key))
		if got := must(t)(c.Command("GET", key)); got != key {
			t.Errorf("%s = %q", key, got)
		}
		if i < 20 {
			owner, err := c.PrimaryOf(key)
			if err != nil {
				t.Fatal(err)
			}
			owners[owner] = true
		}
	}
	if len(owners) != clusterPrimaries {
		t.Errorf("the keys have %d owners, not %d", len(owners), clusterPrimaries)
	}
}

func TestSetsOfOtherVersions(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"redis-6.2", "valkey-9"} {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			start := time.Now()
			s := Sentinel(t, Options{Version: v})
			if p, err := s.Primary(); err != nil || p != s.Nodes[0] {
				t.Errorf("the primary is %v, %v", p, err)
			}
			sentinels := time.Since(start)
			start = time.Now()
			c := Cluster(t, Options{Version: v})
			t.Logf("sentinels up after %v, the cluster after %v", sentinels, time.Since(start))
			writeEverywhere(t, c)
		})
	}
}

// failOverFromFrozen checks that a primary that hangs is replaced, and joins again when it wakes.
func failOverFromFrozen(t *testing.T, c *ClusterSet) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	old, err := c.PrimaryOf("key0")
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Stop(); err != nil {
		t.Fatal(err)
	}
	next, err := c.NextPrimaryOf(ctx, "key0", old)
	if err != nil {
		t.Fatal(err)
	}
	must(t)(next.Command("SET", "key0", "newer"))
	if err := old.Continue(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(ctx); err != nil {
		t.Fatal(err)
	}
	if role, err := old.info("replication", "role"); role != "slave" {
		t.Errorf("the frozen primary woke as %s, %v", role, err)
	}
}

func TestSetsWithTLS(t *testing.T) {
	t.Parallel()
	c := Cluster(t, Options{TLS: true, ClientCerts: true, Password: "secret"})
	writeEverywhere(t, c)
	failOverFromFrozen(t, c)
	s := Sentinel(t, Options{TLS: true})
	if !strings.HasPrefix(c.URL(), "rediss+cluster://:secret@127") ||
		!strings.HasPrefix(s.URL(), "rediss+sentinel://127") {
		t.Errorf("%s, %s", c.URL(), s.URL())
	}
}

// TestSteadySets: a primary that stands still for longer than others otherwise wait is no reason to take over.
func TestSteadySets(t *testing.T) {
	t.Parallel()
	s, c := Sentinel(t, Options{Steady: true}), Cluster(t, Options{Steady: true})
	first, err := c.PrimaryOf("key0")
	if err != nil {
		t.Fatal(err)
	}
	for _, primary := range []*Server{s.Nodes[0], first} {
		if err := primary.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(4 * time.Second) // the passing of time is what is tested
	for _, primary := range []*Server{s.Nodes[0], first} {
		if err := primary.Continue(); err != nil {
			t.Fatal(err)
		}
	}
	if p, err := s.Primary(); err != nil || p != s.Nodes[0] {
		t.Errorf("the primary is %v, %v; it was %v", p, err, s.Nodes[0])
	}
	if p, err := c.PrimaryOf("key0"); err != nil || p != first {
		t.Errorf("the primary of the cluster is %v, %v; it was %v", p, err, first)
	}
}
