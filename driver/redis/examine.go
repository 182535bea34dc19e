package redis

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	goredis "github.com/redis/go-redis/v9"
)

// idWindow is how long a producer's own id is remembered at least, after its message is gone.
const idWindow = 60 * time.Second

// server is what was found out about a server; what an ACL hides is "".
type server struct {
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

// examine finds out what the server can do, refuses one that cannot work, and warns about one that may lose messages.
func (d *Driver) examine(ctx context.Context) error {
	node, err := d.probe(ctx)
	if err != nil {
		return err
	}
	s, err := inspectServer(ctx, node)
	if err != nil {
		return err
	}
	_, onCluster := d.client.(*goredis.ClusterClient)
	switch {
	case s.major < 6 || s.major == 6 && s.minor < 2:
		return driver.NewError(driver.ErrUnsupported, fmt.Sprintf("the server is Redis %s", s.version), "use Redis 6.2 or later, or Valkey", nil)
	case s.isCluster && !onCluster:
		return driver.NewError(driver.ErrInvalid, "the server is part of a cluster", "use redis+cluster:// with some of its nodes", nil)
	case onCluster && !s.isCluster:
		return driver.NewError(driver.ErrInvalid, "the server is not part of a cluster", "use redis:// for a single server", nil)
	case s.role == "slave":
		return driver.NewError(driver.ErrNotApplied, "the server is a replica", "connect to the primary, or use redis+sentinel:// or redis+cluster://", nil)
	}
	for _, f := range s.findings() {
		if f.Severity != driver.SeverityError {
			continue
		}
		if d.o.Strict {
			return driver.NewError(driver.ErrUnsupported, f.Text, f.Hint, nil)
		}
		d.o.Logger.Warn("ferry: "+f.Text, "hint", f.Hint)
	}
	d.scripts = newScripts(s.major >= 7)
	d.caps = d.capabilities(s)
	return nil
}

// probe returns the client of one primary.
func (d *Driver) probe(ctx context.Context) (goredis.Cmdable, error) {
	c, ok := d.client.(*goredis.ClusterClient)
	if !ok {
		return d.client, nil
	}
	node, err := c.MasterForKey(ctx, registryKey(d.o.Prefix))
	if err != nil {
		if strings.Contains(err.Error(), "cluster support disabled") {
			return nil, driver.NewError(driver.ErrInvalid, "the server is not part of a cluster", "use redis:// for a single server", err)
		}
		return nil, classify(err)
	}
	return node, nil
}

func inspectServer(ctx context.Context, c goredis.Cmdable) (*server, error) {
	before := time.Now()
	at, err := c.Time(ctx).Result() // every user may ask that, and scripts do
	if err != nil {
		return nil, classify(err)
	}
	s := &server{skew: at.Sub(before.Add(time.Since(before) / 2)).Round(time.Millisecond)}
	info := map[string]string{}
	for _, section := range []string{"server", "replication", "persistence", "cluster", "memory"} {
		text, err := c.Info(ctx, section).Result()
		if err != nil && !isReply(err) {
			return nil, classify(err)
		}
		readInfo(info, text)
	}
	s.version, s.valkey = info["redis_version"], info["valkey_version"] != ""
	if s.valkey {
		s.version = info["valkey_version"]
	}
	if s.version == "" { // hidden by an ACL: assume a server that works, and find out
		s.version, s.major = "unknown", 6
		s.minor = 2
	} else {
		major, rest, _ := strings.Cut(s.version, ".")
		minor, _, _ := strings.Cut(rest, ".")
		s.major, _ = strconv.Atoi(major)
		s.minor, _ = strconv.Atoi(minor)
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

// level is what an acknowledged publish survives without replicas.
func (s *server) level() driver.Durability {
	switch {
	case s.aof && s.fsync == "always":
		return driver.Synced
	case s.aof:
		return driver.Written
	}
	return driver.InMemory
}

func (d *Driver) capabilities(s *server) driver.Capabilities {
	c := driver.Capabilities{
		Driver:         "redis",
		LeaseScope:     driver.PerMessage,
		MinLease:       time.Second,
		DefaultLease:   10 * time.Second,
		KeyedPriority:  driver.Everything,
		Parallel:       driver.Everything,
		Dedup:          driver.Exact,
		IDWindow:       idWindow,
		Bound:          driver.PerShard,
		AtomicPublish:  driver.PerShard,
		AtomicEmit:     driver.PerShard,
		Counts:         driver.Exact,
		GetByID:        driver.Index,
		PhysicalDelete: true,
		History:        driver.None,
		Durability:     s.level(),
		MaxBody:        d.o.MaxBody,
	}
	for l := driver.InMemory; l <= s.level(); l++ {
		c.Levels = append(c.Levels, l)
	}
	for n := 1; n <= min(s.replicas, 8); n++ {
		c.Levels = append(c.Levels, driver.Replicated(n))
	}
	return c
}
