package redis

import (
	"context"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ferrymq/ferry/internal/redisconn"
)

// blockersMost bounds how many leases and waits are looked at for what waits behind them.
const blockersMost = 200

// oldestBehind returns how long the oldest message is ready that waits behind another one of its key, which is held or
// waits for a retry: it is in no lane. It looks at the leases and waits that end first.
func (s *shard) oldestBehind(ctx context.Context, keys []string, now time.Time) (time.Duration, error) {
	timers, err := s.d.client.ZRange(ctx, keys[keyTimer], 0, blockersMost-1).Result()
	if err != nil || len(timers) == 0 {
		return 0, redisconn.Classify(err)
	}
	var tokens, seqs []string
	for _, t := range timers {
		if token, ok := strings.CutPrefix(t, "L"); ok {
			tokens = append(tokens, token)
		} else if seq, ok := strings.CutPrefix(t, "W"); ok {
			seqs = append(seqs, seq)
		}
	}
	leases, err := s.fields(ctx, keys[keyLease], tokens)
	if err != nil {
		return 0, err
	}
	states, err := s.fields(ctx, keys[keyState], seqs)
	if err != nil {
		return 0, err
	}
	return s.oldestFirst(ctx, keys, blockedKeys(leases, states), now)
}

// blockedKeys returns the keys of what is held, and for those of what waits the sequence number of that.
func blockedKeys(leases, states []string) map[string]string {
	blocked := map[string]string{}
	for _, text := range states {
		if st, ok := parseState(text); ok {
			if it, ok := parseItem(st.item); ok && it.key != "" {
				blocked[it.key] = it.seq
			}
		}
	}
	for _, record := range leases {
		_, lines, _ := strings.Cut(record, "\n")
		for line := range strings.SplitSeq(lines, "\n") {
			if it, ok := parseItem(line); ok && it.key != "" && blocked[it.key] == "" {
				blocked[it.key] = ""
			}
		}
	}
	return blocked
}

// oldestFirst looks at the first message of each key that neither is held nor waits.
func (s *shard) oldestFirst(ctx context.Context, keys []string, blocked map[string]string,
	now time.Time) (oldest time.Duration, err error) {
	names := make([]string, 0, len(blocked))
	for key := range blocked {
		names = append(names, key)
	}
	chains, err := s.fields(ctx, keys[keyChain], names)
	if err != nil {
		return 0, err
	}
	var firsts, waiting []string
	for i, chain := range chains {
		if f := strings.SplitN(chain, " ", 4); len(f) == 4 {
			if it, ok := parseItem(f[3]); ok && it.seq == blocked[names[i]] {
				waiting = append(waiting, it.seq)
			} else {
				firsts = append(firsts, f[3])
			}
		}
	}
	behind, err := s.fields(ctx, keys[keyNext], waiting)
	for _, text := range append(firsts, behind...) {
		if it, ok := parseItem(text); ok {
			oldest = max(oldest, now.Sub(it.since))
		}
	}
	return oldest, err
}

// fields returns fields of a hash, "" for those that are not there.
func (s *shard) fields(ctx context.Context, key string, names []string) ([]string, error) {
	if len(names) == 0 {
		return nil, nil
	}
	words := make([]any, 0, 2+len(names))
	words = append(words, "hmget", key)
	for i := range names {
		words = append(words, &names[i])
	}
	cmd := goredis.NewSliceCmd(ctx, words...)
	_ = s.d.client.Process(ctx, cmd) // the command keeps its error
	list, err := cmd.Result()
	if err != nil {
		return nil, redisconn.Classify(err)
	}
	out := make([]string, len(list))
	for i, v := range list {
		out[i], _ = v.(string)
	}
	return out, nil
}
