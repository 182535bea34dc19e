package redisconn

import (
	"context"
	"crypto/sha1"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/driver"
)

// Script is one operation, ready to be called.
type Script struct{ Name, source, sha string }

// NewScript returns the script with this text.
func NewScript(source string) Script {
	sum := sha1.Sum([]byte(source))
	return Script{source: source, sha: hex.EncodeToString(sum[:])}
}

// Library is the Lua of a driver, for one version of the server: operations, and the fragments that they share. The
// head of an operation names the fragments that come before it, in order.
type Library struct {
	// Files are lua/ and a name each. They are embedded by their names, so that one that is missing fails the build.
	Files embed.FS
	// Flags says that the server reads them: Redis from 7.0 on.
	Flags bool
	// Frees is a write that frees memory and changes nothing, for a server that reads no flags.
	Frees string
}

// Plain is the script of an operation.
func (l Library) Plain(name string) Script { return l.script(name) }

// Relief is the script of an operation that relieves a full server, and so may write when it is out of memory: by a
// flag; before there were flags, a script was judged by its first write.
func (l Library) Relief(name string) Script {
	if l.Flags {
		return l.script(name, "#!lua flags=allow-oom")
	}
	return l.script(name, l.Frees)
}

func (l Library) script(name string, parts ...string) Script {
	operation := l.file(name)
	_, head, shares := strings.Cut(operation, "\n-- Fragments: ")
	fragments, _, _ := strings.Cut(head, ".\n")
	for fragment := range strings.SplitSeq(fragments, ", ") {
		if shares {
			parts = append(parts, l.file(fragment))
		}
	}
	s := NewScript(strings.Join(append(parts, operation), "\n"))
	s.Name = name
	return s
}

// file returns an operation or a fragment. That a head names one that is not there is found when the driver is opened.
func (l Library) file(name string) string {
	text, err := l.Files.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// Run calls the script. A server that does not know it, after a restart or SCRIPT FLUSH, is sent its text.
func (s *Script) Run(ctx context.Context, c goredis.UniversalClient, keys []string, args ...any) (Reply, error) {
	reply, err := s.On(ctx, c, keys, args)
	if err != nil {
		Relocate(ctx, c, err)
	}
	return reply, err
}

// In adds a call to a pipeline. Where the server does not know the script, which its error says, call Run or On
// instead.
func (s *Script) In(ctx context.Context, p goredis.Pipeliner, keys []string, args ...any) *goredis.Cmd {
	return DoOnce(ctx, p, s.words(keys, args)...)
}

// DoOnce adds a command to a pipeline, which the client library never sends again by itself.
func DoOnce(ctx context.Context, p goredis.Pipeliner, words ...any) *goredis.Cmd {
	cmd := once{goredis.NewCmd(ctx, words...)}
	_ = p.Process(ctx, cmd)
	return cmd.Cmd
}

// replicaPatience is how long a publish waits for its replicas.
const replicaPatience = 2 * time.Second

// RunAt is Run at a durability level: for replicated(n) it waits, on the connection of the write, until n replicas have
// it. If they do not in time the outcome is unknown, since the primary has it.
func (s *Script) RunAt(ctx context.Context, c goredis.UniversalClient, level driver.Durability, keys []string,
	args ...any) (Reply, error) {
	n := level.Replicas()
	if n == 0 {
		return s.Run(ctx, c, keys, args...)
	}
	node, err := NodeOf(ctx, c, keys[0])
	if err != nil {
		return nil, err
	}
	conn := node.Conn()
	defer func() { _ = conn.Close() }()
	reply, err := s.On(ctx, conn, keys, args)
	if err != nil {
		Relocate(ctx, c, err)
		return nil, err
	}
	have, err := conn.Wait(ctx, n, replicaPatience).Result()
	if err != nil {
		return nil, driver.NewError(driver.ErrUnknown, "the replicas did not answer", "publish again with the same id", err)
	}
	if have < int64(n) {
		return nil, driver.NewError(driver.ErrUnknown, fmt.Sprintf("%d of %d replicas have the message", have, n),
			"look at the replicas; publish again with the same id", nil)
	}
	return reply, nil
}

// processor is a client or a single connection.
type processor interface {
	Process(ctx context.Context, cmd goredis.Cmder) error
}

func (s *Script) words(keys []string, args []any) []any {
	words := make([]any, 0, 3+len(keys)+len(args))
	words = append(words, "evalsha", s.sha, len(keys))
	for i := range keys { // by pointers, which cost no allocation
		words = append(words, &keys[i])
	}
	return append(words, args...)
}

// On is Run on a single connection, whatever it belongs to.
func (s *Script) On(ctx context.Context, c processor, keys []string, args []any) (Reply, error) {
	words := s.words(keys, args)
	reply, err := ask(ctx, c, words)
	if goredis.HasErrorPrefix(err, "NOSCRIPT") {
		words[0], words[1] = "eval", s.source
		reply, err = ask(ctx, c, words)
	}
	return reply, Classify(err)
}

// once is a command that the client library never sends again by itself, whoever made the client and whatever its
// options are: what it says of its last try would hide that an earlier one may have been applied.
type once struct{ *goredis.Cmd }

// NoRetry is asked by the client library.
func (once) NoRetry() bool { return true }

func ask(ctx context.Context, c processor, words []any) (Reply, error) {
	cmd := once{goredis.NewCmd(ctx, words...)}
	_ = c.Process(ctx, cmd) // the command keeps its error
	return cmd.Slice()
}

// Relocate makes a cluster client ask again who has which slot, after a node was not reached or did not answer: by
// itself it keeps asking a dead primary for up to a minute.
func Relocate(ctx context.Context, client goredis.UniversalClient, err error) {
	c, ok := client.(*goredis.ClusterClient)
	if ok && (errors.Is(err, driver.ErrNotApplied) || errors.Is(err, driver.ErrUnknown)) {
		c.ReloadState(ctx)
	}
}

// NodeOf returns the client of the server that has a key.
func NodeOf(ctx context.Context, client goredis.UniversalClient, key string) (*goredis.Client, error) {
	switch c := client.(type) {
	case *goredis.ClusterClient:
		node, err := c.MasterForKey(ctx, key)
		return node, Classify(err)
	case *goredis.Client:
		return c, nil
	}
	return nil, driver.NewError(driver.ErrUnsupported, "this client cannot pin a connection",
		"use a Client, a FailoverClient or a ClusterClient", nil)
}
