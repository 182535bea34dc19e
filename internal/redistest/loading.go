package redistest

import (
	"context"
	"fmt"
	"strconv"
)

// slowKeys is how many keys a server loads slowly: a minute's worth, which FinishLoading cuts short.
const slowKeys = 4000

// SlowLoading is the configuration of a server for RestartLoading, with an append-only file. It answers while it loads.
func SlowLoading() []string {
	return []string{"key-load-delay 10000", "rdbcompression no", "loading-process-events-interval-bytes 1024",
		"aof-use-rdb-preamble yes"}
}

// RestartLoading kills the server, starts it again and returns while it loads its data, which takes until
// FinishLoading. The server has an append-only file and the configuration of SlowLoading.
func (s *Server) RestartLoading() error {
	fill := "for i = 1, ARGV[1] do redis.call('SET', 'loading:' .. i, string.rep('x', 1024)) end"
	if _, err := s.Command("EVAL", fill, "0", strconv.Itoa(slowKeys)); err != nil {
		return err
	}
	if _, err := s.Command("BGREWRITEAOF"); err != nil {
		return err
	}
	if err := s.awaitPersistence("aof_rewrite_in_progress", "0"); err != nil {
		return err
	}
	s.Kill()
	if err := s.run(); err != nil {
		return err
	}
	return s.awaitPersistence("loading", "1")
}

// FinishLoading lets a server load the rest at once, and returns when it has.
func (s *Server) FinishLoading() error {
	if _, err := s.Command("CONFIG", "SET", "key-load-delay", "0"); err != nil {
		return err
	}
	return s.awaitAnswer(s.current())
}

// awaitPersistence waits until a field of INFO has a value.
func (s *Server) awaitPersistence(name, want string) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), readyTimeout, errStalled)
	defer cancel()
	return until(ctx, func() error {
		got, err := s.info("persistence", name)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %q, not %q", name, got, want)
		}
		return err
	})
}
