package redistest

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// SentinelName is the name under which the sentinels watch their primary.
const SentinelName = "ferry"

// SentinelSet is a primary with a replica, watched by three sentinels that agree on a dead primary after about a
// second.
type SentinelSet struct {
	// Nodes keep the data. The first is the primary at the start.
	Nodes []*Server
	// Sentinels have no password.
	Sentinels []*Server

	options   Options
	authority *authority
}

// StartSentinel starts a set with its files in dir, and returns when everybody knows everybody. The options are for the
// nodes. Programs use it; tests use Sentinel.
func StartSentinel(ctx context.Context, dir string, o Options) (*SentinelSet, error) {
	a, err := authorityFor(o, dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	s := &SentinelSet{options: o, authority: a}
	if err = s.launchNodes(ctx, dir); err == nil {
		err = s.launchSentinels(dir)
	}
	if err == nil {
		err = s.Ready(ctx)
	}
	if err != nil {
		defer s.Close()
		return nil, fmt.Errorf("no set of sentinels: %w\n%s", err, logTails(slices.Concat(s.Nodes, s.Sentinels)))
	}
	return s, nil
}

// Close ends all processes for good.
func (s *SentinelSet) Close() {
	for _, server := range slices.Concat(s.Sentinels, s.Nodes) {
		server.Close()
	}
}

// launchNodes returns when the replica is connected: what the sentinels see first is complete, so that they need not
// wait for their next look.
func (s *SentinelSet) launchNodes(ctx context.Context, dir string) error {
	var role []string
	for i := range 2 {
		n, err := launch(spec{
			dir:     filepath.Join(dir, fmt.Sprintf("node%d", i)),
			options: s.options, authority: s.authority, extra: role,
		})
		if err != nil {
			return err
		}
		s.Nodes = append(s.Nodes, n)
		role = []string{fmt.Sprintf("replicaof %s %d", s.Nodes[0].host.IP(), s.Nodes[0].port.number)}
	}
	return until(ctx, func() error { return replicates(s.Nodes[0], 1) })
}

func (s *SentinelSet) launchSentinels(dir string) error {
	for i := range 3 {
		sentinel, err := launch(spec{
			dir:       filepath.Join(dir, fmt.Sprintf("sentinel%d", i)),
			options:   Options{Version: s.options.Version, TLS: s.options.TLS, Network: s.options.Network},
			authority: s.authority, sentinel: true, extra: s.watching(s.Nodes[0]),
		})
		if err != nil {
			return err
		}
		s.Sentinels = append(s.Sentinels, sentinel)
		// They introduce themselves every 2 s; 7.0 and later can be told to hurry. Older ones refuse, and take longer.
		_, _ = sentinel.Command("SENTINEL", "DEBUG", "PUBLISH-PERIOD", "100", "INFO-PERIOD", "500")
	}
	return nil
}

func (s *SentinelSet) watching(primary *Server) []string {
	lines := []string{
		fmt.Sprintf("sentinel monitor %s %s %d 2", SentinelName, primary.host.IP(), primary.port.number),
		"sentinel down-after-milliseconds " + SentinelName + " " + s.options.failAfter(),
		"sentinel failover-timeout " + SentinelName + " 5000",
	}
	if s.options.Password != "" {
		lines = append(lines, "sentinel auth-pass "+SentinelName+" "+quote(s.options.Password))
	}
	return lines
}

// URL names the three sentinels and what they watch: redis+sentinel://h1,h2,h3/ferry.
func (s *SentinelSet) URL() string {
	return location("+sentinel", s.authority, "", s.options.Password, strings.Join(s.Addrs(), ","), SentinelName)
}

// Addrs are those of the sentinels.
func (s *SentinelSet) Addrs() []string {
	return addrs(s.Sentinels)
}

// Primary returns the node that the sentinels name now. During a fail-over this may still be the dead one.
func (s *SentinelSet) Primary() (*Server, error) {
	var failed error
	for _, sentinel := range s.Sentinels {
		if !sentinel.answering() {
			continue
		}
		reply, err := sentinel.Command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SentinelName)
		if err == nil && len(reply.List) == 2 {
			return nodeAt(s.Nodes, reply.List[0].Text, reply.List[1].Text)
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("no sentinel names a primary: %w", failed)
}

// NextPrimary waits until another node than old is named and accepts writes.
func (s *SentinelSet) NextPrimary(ctx context.Context, old *Server) (*Server, error) {
	var next *Server
	err := until(ctx, func() (err error) {
		if next, err = s.Primary(); err != nil {
			return err
		}
		if next == old {
			return fmt.Errorf("%s is still the primary", old)
		}
		return isPrimary(next)
	})
	return next, err
}

// Ready waits for full strength: all run, the sentinels agree and know each other, the replica is connected.
func (s *SentinelSet) Ready(ctx context.Context) error {
	return until(ctx, func() error {
		primary, err := s.Primary()
		if err != nil {
			return err
		}
		for _, sentinel := range s.Sentinels {
			if err := s.sees(sentinel, primary); err != nil {
				return err
			}
		}
		return errors.Join(isPrimary(primary), replicates(primary, len(s.Nodes)-1))
	})
}

// sees compares what one sentinel knows with what it should know.
func (s *SentinelSet) sees(sentinel, primary *Server) error {
	reply, err := sentinel.Command("SENTINEL", "MASTER", SentinelName)
	if err != nil {
		return err
	}
	known := map[string]string{}
	for i := 0; i+1 < len(reply.List); i += 2 {
		known[reply.List[i].Text] = reply.List[i+1].Text
	}
	for name, want := range map[string]string{
		"port": fmt.Sprint(primary.port.number), "flags": "master",
		"num-slaves": fmt.Sprint(len(s.Nodes) - 1), "num-other-sentinels": fmt.Sprint(len(s.Sentinels) - 1),
	} {
		if known[name] != want {
			return fmt.Errorf("the sentinel at %s has %s %q, not %q", sentinel.Addr(), name, known[name], want)
		}
	}
	return nil
}
