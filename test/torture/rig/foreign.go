package rig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ferrymq/ferry/internal/redistest"
)

// squatter takes the names of keys that come and go while nobody uses them, as somebody else's program might.
type squatter struct {
	seen map[string]bool // names that the topic has used
	key  string          // that is taken now
}

// usurp puts a string where one of the topic's keys has been and will be again. Whoever meets it must say so and change
// nothing, so that nothing is missing when it is gone. Nothing happens when all the keys are in use.
func (q *squatter) usurp(n *redistest.Server, at time.Duration) error {
	for range 20 {
		free, err := q.look(n)
		if err != nil {
			return err
		}
		if len(free) == 0 {
			continue
		}
		key := free[int(at/time.Millisecond)*7919%len(free)]
		reply, err := n.Command("SET", key, "foreign", "NX")
		if err != nil {
			return err
		}
		if !reply.Null {
			q.key = key
			return nil
		}
	}
	return nil
}

// look returns the names that were used and are not now, in order.
func (q *squatter) look(n *redistest.Server) ([]string, error) {
	reply, err := n.Command("KEYS", "{ferry?"+Topic+"?*")
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for _, k := range reply.List {
		used[k.Text] = true
	}
	var free []string
	for key := range q.seen {
		if !used[key] {
			free = append(free, key)
		}
	}
	if q.seen == nil {
		q.seen = map[string]bool{}
	}
	maps.Copy(q.seen, used)
	slices.Sort(free)
	return free, nil
}

// leave gives the name back.
func (q *squatter) leave(n *redistest.Server) error {
	key := q.key
	if q.key = ""; key == "" {
		return nil
	}
	reply, err := n.Command("TYPE", key)
	if err == nil && reply.Text != "string" {
		return fmt.Errorf("%s is a %s now, although it belonged to somebody else", key, reply.Text)
	}
	_, err = n.Command("DEL", key)
	return err
}

// fatten gives a server so much to load that it takes a second or more after a restart.
func fatten(ctx context.Context, n *redistest.Server) error {
	if _, err := n.Command("DEBUG", "POPULATE", "1500000", "ballast", "64"); err != nil {
		return err
	}
	if _, err := n.Command("BGREWRITEAOF"); err != nil { // which alone puts them into the file
		return err
	}
	for ctx.Err() == nil {
		reply, err := n.Command("INFO", "persistence")
		if err != nil {
			return err
		}
		if number(reply.Text, "aof_rewrite_in_progress") == 0 && number(reply.Text, "aof_rewrite_scheduled") == 0 {
			if !strings.Contains(reply.Text, "aof_last_bgrewrite_status:ok") {
				return errors.New("the server could not rewrite its file")
			}
			return nil
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return ctx.Err()
}
