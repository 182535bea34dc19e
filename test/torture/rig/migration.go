package rig

import (
	"context"
	"errors"
	"strings"

	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/test/torture/schedule"
)

// migrationActions are for clusters.
func migrationActions() schedule.Actions {
	return schedule.Actions{
		"migrate": {Lasting: true,
			Help: "the slot of the topic moves to another node; half of its keys stay behind meanwhile"},
	}
}

// migration is a slot on its way from one primary to another.
type migration struct {
	slot         string
	from, to     *redistest.Server
	fromID, toID string
	others       []*redistest.Server // primaries that must learn of it
}

// beginMigration opens the way, and moves half of the keys.
func (s clusterSet) beginMigration(from *redistest.Server) (*migration, error) {
	m := &migration{from: from}
	for _, n := range s.Nodes {
		role, err := n.Command("INFO", "replication")
		if err != nil {
			return nil, err
		}
		switch {
		case n == from || !strings.Contains(role.Text, "role:master"):
		case m.to == nil:
			m.to = n
		default:
			m.others = append(m.others, n)
		}
	}
	if m.to == nil {
		return nil, errors.New("there is no other primary")
	}
	var slot, fromID, toID redistest.Reply
	err := commands(
		step{from, &slot, []string{"CLUSTER", "KEYSLOT", s.key}},
		step{from, &fromID, []string{"CLUSTER", "MYID"}},
		step{m.to, &toID, []string{"CLUSTER", "MYID"}},
	)
	m.slot, m.fromID, m.toID = slot.Text, fromID.Text, toID.Text
	if err == nil {
		err = commands(
			step{m.to, nil, []string{"CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.fromID}},
			step{from, nil, []string{"CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.toID}},
		)
	}
	if err == nil {
		_, err = m.move(2)
	}
	return m, err
}

// finish moves the other keys, and tells everybody.
func (m *migration) finish(ctx context.Context) error {
	for {
		left, err := m.move(1)
		if err != nil {
			return err
		}
		if left == 0 {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	var errs []error
	for _, n := range append([]*redistest.Server{m.to, m.from}, m.others...) {
		_, err := n.Command("CLUSTER", "SETSLOT", m.slot, "NODE", m.toID)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// move takes one key of every so many along, and returns how many there were.
func (m *migration) move(every int) (int, error) {
	keys, err := m.from.Command("CLUSTER", "GETKEYSINSLOT", m.slot, "1000")
	if err != nil || len(keys.List) == 0 {
		return 0, err
	}
	host, port, _ := strings.Cut(m.to.Addr(), ":")
	args := []string{"MIGRATE", host, port, "", "0", "5000", "KEYS"}
	for i, k := range keys.List {
		if i%every == 0 {
			args = append(args, k.Text)
		}
	}
	_, err = m.from.Command(args...)
	return len(keys.List), err
}

// step is one command of several.
type step struct {
	server *redistest.Server
	reply  *redistest.Reply // may be nil
	args   []string
}

func commands(steps ...step) error {
	for _, s := range steps {
		reply, err := s.server.Command(s.args...)
		if err != nil {
			return err
		}
		if s.reply != nil {
			*s.reply = reply
		}
	}
	return nil
}
