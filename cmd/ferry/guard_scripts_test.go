package main

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/guard"
	guardredis "github.com/ferrymq/ferry/guard/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// TestGuardScripts runs the scripts in testdata/script/guard on every store that commands can reach.
func TestGuardScripts(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{})
	inRedis := func() (string, guard.Store, error) {
		prefix := "s" + rand.Text()
		s, err := guardredis.Open(context.Background(), guardredis.Options{URL: server.URL(), Prefix: prefix})
		return server.URL() + "?prefix=" + prefix, s, err
	}
	for name, start := range map[string]func(env *testscript.Env) (url string, s guard.Store, err error){
		"disk": func(env *testscript.Env) (string, guard.Store, error) {
			dir := filepath.Join(env.WorkDir, "store")
			s, err := guard.OpenDir(dir, guard.DirOptions{})
			return "disk://" + dir, s, err
		},
		"redis": func(*testscript.Env) (string, guard.Store, error) { return inRedis() },
		"server": func(env *testscript.Env) (string, guard.Store, error) {
			address, s, err := inRedis()
			if err != nil {
				return "", nil, err
			}
			address, err = serveScript(t, env, address, "", "")
			return address, s, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testscript.Run(t, testscript.Params{
				Dir:  "testdata/script/guard",
				Cmds: map[string]func(*testscript.TestScript, bool, []string){"exits": exits},
				Setup: func(env *testscript.Env) error {
					url, store, err := start(env)
					if err != nil {
						return err
					}
					env.Setenv("FERRY_STORE", url)
					env.Setenv("USER", "ann")
					env.Setenv("ANN", "ann")
					env.Setenv("BOB", "bob")
					if name == "server" { // which says itself who did it, whoever they claim to be
						env.Setenv("ANN", "token test")
						env.Setenv("BOB", "token test")
					}
					return misbehave(store)
				},
				Condition: func(cond string) (bool,
					error) {
					return cond == name || cond == "redis" && name == "server", nil
				},
				RequireUniqueNames: true,
			})
		})
	}
}

// misbehave is a program that has limited a robot, and whose breaker is closed.
func misbehave(s guard.Store) error {
	ctx := context.Background()
	limiter, err := guard.NewLimiter(s, guard.LimiterOptions{Limits: []guard.Limit{
		{Name: "user", Rule: guard.Rule{Limit: 2, Window: time.Hour, Penalty: guard.Penalty{After: 2}}}}})
	if err != nil {
		return err
	}
	for range 5 {
		_ = limiter.Allow(ctx, &ferry.Message{Key: "robot"})
	}
	breaker, err := guard.NewBreaker(guard.BreakerOptions{Name: "billing", Store: s, Instance: "host-1"})
	if err != nil {
		return err
	}
	pass := breaker.Middleware()(func(context.Context, *ferry.Delivery) error { return nil })
	if err := pass(ctx, &ferry.Delivery{Message: &ferry.Message{}}); err != nil {
		return err
	}
	return s.Close(ctx)
}
