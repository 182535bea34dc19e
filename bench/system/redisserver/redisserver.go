// Package redisserver starts the Redis that ours, the peers and the raw limit are measured on, and says what it used.
package redisserver

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry/bench/system"
	"github.com/ferrymq/ferry/internal/redistest"
)

// Settings say what the server runs with, for the report.
const Settings = "redis-server 7.0 as a child process on loopback TCP, nothing persisted, all else default"

// Server is one redis-server, a child of this process.
type Server struct {
	*redistest.Server
	dir   string
	asked atomic.Int64 // commands that only look
}

// Start starts an empty server.
func Start() (*Server, error) {
	dir, err := os.MkdirTemp("", "bench-redis-")
	if err != nil {
		return nil, err
	}
	s, err := redistest.StartSingle(dir, redistest.Options{})
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Server{Server: s, dir: dir}, nil
}

// Usage asks the server. What it asks is not counted.
func (s *Server) Usage() (system.Usage, error) {
	asked := s.asked.Add(1) - 1
	reply, err := s.Command("INFO", "everything")
	if err != nil {
		return system.Usage{}, err
	}
	info := parse(reply.Text)
	u := system.Usage{
		CPU:      time.Duration((info.number("used_cpu_user") + info.number("used_cpu_sys")) * 1e9),
		Commands: int64(info.number("total_commands_processed")) - asked,
		Bytes:    int64(info.number("used_memory")),
		Keys:     info.keys(),
	}
	if u.CPU == 0 || u.Bytes == 0 {
		return u, fmt.Errorf("redis tells nothing about itself: %.100q", reply.Text)
	}
	return u, nil
}

// Close ends the server and removes its files.
func (s *Server) Close() error {
	s.Server.Close()
	return os.RemoveAll(s.dir)
}

// fields are the lines of INFO.
type fields map[string]string

func parse(text string) fields {
	f := fields{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			f[name] = value
		}
	}
	return f
}

func (f fields) number(name string) float64 {
	v, _ := strconv.ParseFloat(f[name], 64) // what is missing is 0
	return v
}

// keys reads db0:keys=12,expires=0,avg_ttl=0, which is not there while the database is empty.
func (f fields) keys() int64 {
	value, _, _ := strings.Cut(strings.TrimPrefix(f["db0"], "keys="), ",")
	n, _ := strconv.ParseInt(value, 10, 64)
	return n
}
