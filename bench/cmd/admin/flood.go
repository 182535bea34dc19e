package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/admin/api"
	"github.com/ferrymq/ferry/bench/system/redisserver"
	"github.com/ferrymq/ferry/open"
)

// floodRounds are pairs of rounds, one with and one without a flood, so that what else the machine does touches both.
const floodRounds = 5

// measureFlood publishes while somebody asks the admin API as much as the server lets one token ask, and while nobody
// does.
func measureFlood(ctx context.Context, s sizes) (rows []row, err error) {
	dir, err := os.MkdirTemp("", "bench-admin-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	command, err := build(ctx, dir)
	if err != nil {
		return nil, err
	}
	redis, err := redisserver.Start()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, redis.Close()) }()
	token, err := makeToken(ctx, redis.URL())
	if err != nil {
		return nil, err
	}
	p, err := startServer(ctx, command, redis.URL())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	b, err := open.URL(ctx, redis.URL())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.Close(context.WithoutCancel(ctx))) }()
	var ratios []float64
	var asked int64
	for range floodRounds {
		alone, err := publishFor(ctx, b, s.publish)
		if err != nil {
			return nil, err
		}
		stop := flood(ctx, p.url+api.Base+"/topics", token)
		beside, err := publishFor(ctx, b, s.publish)
		asked += stop()
		if err != nil {
			return nil, err
		}
		ratios = append(ratios, 1-float64(beside)/float64(alone))
	}
	slices.Sort(ratios)
	return []row{{fmt.Sprintf("publishing on Redis beside a flood of requests (%.0f answered in a second)",
		float64(asked)/(floodRounds*s.publish.Seconds())),
		fmt.Sprintf("%.1f %% slower, median of %d rounds (%.1f to %.1f)", 100*ratios[floodRounds/2], floodRounds,
			100*ratios[0], 100*ratios[floodRounds-1]), "≤ 10 %"}}, nil
}

// publishFor counts what eight callers publish in a while.
func publishFor(ctx context.Context, b *ferry.Broker, d time.Duration) (int64, error) {
	within, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var n atomic.Int64
	var failed atomic.Pointer[error]
	var callers sync.WaitGroup
	for range 8 {
		callers.Go(func() {
			for within.Err() == nil {
				if _, err := ferry.Publish(ctx, b, topic, "x"); err != nil {
					failed.Store(&err)
					return
				}
				n.Add(1)
			}
		})
	}
	callers.Wait()
	if err := failed.Load(); err != nil {
		return 0, *err
	}
	return n.Load(), ctx.Err()
}

// flood asks as fast as it is refused, until the function that it returns is called, which tells how often it was
// answered.
func flood(ctx context.Context, address, token string) (stop func() int64) {
	ctx, cancel := context.WithCancel(ctx)
	var answered atomic.Int64
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if ask(ctx, address, token) == http.StatusOK {
					answered.Add(1)
				} else {
					time.Sleep(20 * time.Millisecond) // about as often as it is let in again
				}
			}
		})
	}
	return func() int64 {
		cancel()
		callers.Wait()
		return answered.Load()
	}
}

func ask(ctx context.Context, address, token string) int {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return 0
	}
	q.Header.Set("Authorization", "Bearer "+token)
	res, err := http.DefaultClient.Do(q)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}
