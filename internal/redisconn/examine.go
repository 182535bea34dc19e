// Package redisconn is what drivers on Redis share: URLs, clients, what a server can do, and what its errors mean.
package redisconn

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Server is what was found out about a server; what an ACL hides is "".
type Server struct {
	version   string
	valkey    bool
	major     int
	minor     int
	role      string
	replicas  int
	aof       bool
	fsync     string
	policy    string
	maxMemory string
	saves     string
	cluster   string // cluster_state, or "" for none
	isCluster bool
	skew      time.Duration
}

// Examine finds out what a server can do, and refuses one that cannot work. Of a cluster all primaries are asked that
// can be reached, and the weakest of them counts; the key says which of them must answer.
func Examine(ctx context.Context, client goredis.UniversalClient, key string) (*Server, error) {
	node, err := probe(ctx, client, key)
	if err != nil {
		return nil, err
	}
	s, err := inspectServer(ctx, node)
	if err != nil {
		return nil, err
	}
	cluster, onCluster := client.(*goredis.ClusterClient)
	if onCluster && s.isCluster {
		if err := s.weaken(ctx, cluster); err != nil {
			return nil, err
		}
	}
	switch {
	case s.major < 6 || s.major == 6 && s.minor < 2:
		return nil, driver.NewError(driver.ErrUnsupported, fmt.Sprintf("the server is Redis %s", s.version),
			"use Redis 6.2 or later, or Valkey", nil)
	case s.isCluster && !onCluster:
		return nil, driver.NewError(driver.ErrInvalid, "the server is part of a cluster",
			"use redis+cluster:// with some of its nodes", nil)
	case onCluster && !s.isCluster:
		return nil, errNoCluster(nil)
	case s.role == "slave":
		return nil, driver.NewError(driver.ErrNotApplied, "the server is a replica",
			"connect to the primary, or use redis+sentinel:// or redis+cluster://", nil)
	}
	return s, nil
}

func errNoCluster(cause error) error {
	return driver.NewError(driver.ErrInvalid, "the server is not part of a cluster", "use redis:// for a single server",
		cause)
}

// Flags reports whether scripts may begin with a line of flags.
func (s *Server) Flags() bool { return s.major >= 7 }

// probe returns the client of one primary.
func probe(ctx context.Context, client goredis.UniversalClient, key string) (goredis.Cmdable, error) {
	c, ok := client.(*goredis.ClusterClient)
	if !ok {
		return client, nil
	}
	node, err := c.MasterForKey(ctx, key)
	if err != nil {
		if strings.Contains(err.Error(), "cluster support disabled") {
			return nil, errNoCluster(err)
		}
		return nil, Classify(err)
	}
	return node, nil
}

// weaken makes s the weakest of all primaries of its cluster that can be reached. One that is loading is an error: it
// will serve with settings that it does not tell yet.
func (s *Server) weaken(ctx context.Context, c *goredis.ClusterClient) error {
	var mu sync.Mutex
	var loading error
	_ = c.ForEachMaster(ctx, func(ctx context.Context, node *goredis.Client) error {
		other, err := inspectServer(ctx, node)
		mu.Lock()
		defer mu.Unlock()
		if isLoading(err) {
			loading = err
		}
		if err != nil {
			return nil // it is being replaced, perhaps
		}
		s.replicas = min(s.replicas, other.replicas)
		if other.Level() < s.Level() {
			s.aof, s.fsync, s.saves = other.aof, other.fsync, other.saves
		}
		if s.policy == "noeviction" {
			s.policy, s.maxMemory = other.policy, other.maxMemory
		}
		if other.skew.Abs() > s.skew.Abs() {
			s.skew = other.skew
		}
		return nil
	})
	return loading
}

func inspectServer(ctx context.Context, c goredis.Cmdable) (*Server, error) {
	before := time.Now()
	at, err := c.Time(ctx).Result() // every user may ask that, and scripts do
	if err != nil {
		return nil, Classify(err)
	}
	s := &Server{skew: at.Sub(before.Add(time.Since(before) / 2)).Round(time.Millisecond)}
	info := map[string]string{}
	text, err := c.Info(ctx).Result()
	if err != nil && !IsReply(err) {
		return nil, Classify(err)
	}
	readInfo(info, text)
	if info["loading"] == "1" { // until it has loaded its file it says that it has none
		return nil, driver.NewError(driver.ErrNotApplied, "the server is loading its data",
			"try again when it has started", errLoading)
	}
	s.version, s.valkey = info["redis_version"], info["valkey_version"] != ""
	if s.valkey {
		s.version = info["valkey_version"]
	}
	if s.version == "" { // hidden by an ACL: assume a server that works, and find out
		s.version, s.major, s.minor = "unknown", 6, 2
	} else {
		_, _ = fmt.Sscanf(s.version, "%d.%d", &s.major, &s.minor)
	}
	s.role, s.aof, s.policy = info["role"], info["aof_enabled"] == "1", info["maxmemory_policy"]
	s.replicas, _ = strconv.Atoi(info["connected_slaves"])
	s.maxMemory, s.isCluster = info["maxmemory"], info["cluster_enabled"] == "1"
	s.fsync, s.saves = setting(ctx, c, "appendfsync"), setting(ctx, c, "save")
	if s.isCluster {
		if text, err := c.ClusterInfo(ctx).Result(); err == nil {
			state := map[string]string{}
			readInfo(state, text)
			s.cluster = state["cluster_state"]
		}
	}
	return s, nil
}

func readInfo(into map[string]string, text string) {
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			into[name] = value
		}
	}
}

// setting returns a setting of the server, "?" when that is not allowed.
func setting(ctx context.Context, c goredis.Cmdable, name string) string {
	m, err := c.ConfigGet(ctx, name).Result()
	if err != nil {
		return "?"
	}
	return m[name]
}

// Level is what an acknowledged publish survives without replicas.
func (s *Server) Level() driver.Durability {
	switch {
	case s.aof && s.fsync == "always":
		return driver.Synced
	case s.aof:
		return driver.Written
	}
	return driver.InMemory
}

// Levels are all durability levels that can be asked for.
func (s *Server) Levels() []driver.Durability {
	var levels []driver.Durability
	for l := driver.InMemory; l <= s.Level(); l++ {
		levels = append(levels, l)
	}
	for n := 1; n <= min(s.replicas, 8); n++ {
		levels = append(levels, driver.Replicated(n))
	}
	return levels
}
