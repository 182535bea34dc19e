package redistest

import (
	"context"
	"testing"
)

// private returns a network that ends after the servers in it.
func private(t *testing.T) *Network {
	t.Helper()
	if !CanPartition() {
		t.Skip("network namespaces need Linux, root and ip")
	}
	n, err := NewNetwork()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// A primary that is cut off from the others is replaced although its clients reach it, and follows when it is back.
func TestPartedPrimaryIsReplaced(t *testing.T) {
	t.Parallel()
	n := private(t)
	s := Sentinel(t, Options{Network: n})
	c := Cluster(t, Options{Network: n})
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	for _, set := range []struct {
		name string
		old  *Server
		next func(old *Server) (*Server, error)
		full func(context.Context) error
	}{
		{"sentinel", s.Nodes[0], func(old *Server) (*Server, error) { return s.NextPrimary(ctx, old) }, s.Ready},
		{"cluster", c.Nodes[0], func(old *Server) (*Server, error) { return c.NextPrimaryOf(ctx, "b", old) }, c.Ready},
	} {
		if err := n.Part(set.old); err != nil {
			t.Fatal(err)
		}
		if _, err := set.old.Command("PING"); err != nil {
			t.Errorf("%s: clients do not reach the primary: %v", set.name, err)
		}
		next, err := set.next(set.old)
		if err != nil {
			t.Fatalf("%s: %v", set.name, err)
		}
		t.Logf("%s: %s took over", set.name, next)
		if err := isPrimary(set.old); err != nil {
			t.Errorf("%s: the one that was cut off has heard of it: %v", set.name, err)
		}
		if err := n.Join(set.old); err != nil {
			t.Fatal(err)
		}
		if err := set.full(ctx); err != nil {
			t.Fatalf("%s: %v", set.name, err)
		}
		if err := isPrimary(set.old); err == nil {
			t.Errorf("%s: it is still primary after its return", set.name)
		}
	}
}
