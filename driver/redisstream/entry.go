package redisstream

import (
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/envelope"
	"github.com/ferrymq/ferry/internal/redisconn"
	"github.com/ferrymq/ferry/internal/redisshell"
)

// decode reads the fields of an entry, and tells their size. One that another program added has no version and needs no
// more than a body.
func decode(fields redisconn.Reply, id string) (*driver.Message, int, error) {
	var room [12]envelope.Pair
	pairs, size, ours := room[:0], 0, false
	for i := 0; i+1 < len(fields); i += 2 {
		name, value := fields.Text(i), fields.Text(i+1)
		pairs = append(pairs, envelope.Pair{Name: name, Value: redisconn.Bytes(value)})
		size += len(name) + len(value)
		ours = ours || name == "v"
	}
	if ours {
		m := &driver.Message{}
		return m, size, envelope.FromFields(envelope.Stream, pairs, m)
	}
	m, err := decodeForeign(pairs, id)
	return m, size, err
}

// decodeForeign reads an entry of another program: id, key, ct, pri, body and headers that begin with "h:".
func decodeForeign(pairs []envelope.Pair, id string) (*driver.Message, error) {
	m, found := &driver.Message{ID: id}, false
	for _, p := range pairs {
		switch value := string(p.Value); p.Name {
		case "id":
			m.ID = value
		case "key":
			m.Key = value
		case "ct":
			m.ContentType = value
		case "pri":
			n, err := strconv.ParseInt(value, 10, 8)
			if err != nil || !driver.Priority(n).Valid() {
				return nil, driver.NewError(driver.ErrInvalid, "field pri is not a priority", "use -1, 0, 1 or 2", err)
			}
			m.Priority = driver.Priority(n)
		case "body":
			m.Body, found = p.Value, true
		default:
			if name, ok := strings.CutPrefix(p.Name, "h:"); ok {
				if m.Headers == nil {
					m.Headers = map[string]string{}
				}
				m.Headers[name] = value
			}
		}
	}
	if !found {
		return nil, driver.NewError(driver.ErrInvalid, `the entry has no field "body"`, "add one", nil)
	}
	return m, nil
}

func wall(ms string) time.Time {
	n, err := strconv.ParseInt(ms, 10, 64)
	if err != nil || n <= 0 {
		return time.Time{}
	}
	return time.UnixMilli(n)
}

var stateOf = map[string]driver.State{"L": driver.StateDelayed, "H": driver.StateHeld, "R": driver.StateReady,
	"I": driver.StateInflight,
	"W": driver.StateWaiting, "D": driver.StateDead, "X": driver.StateInvalid, "K": driver.StateDone}

// letterOf is a state as scripts call it.
func letterOf(s driver.State) string {
	for letter, state := range stateOf {
		if state == s {
			return letter
		}
	}
	return ""
}

// entry makes an entry of what lua/view.lua tells.
func (p *partition) entry(v redisconn.Reply) driver.Entry {
	fields := v.Texts(10)
	e := driver.Entry{Group: v.Text(0), Ref: p.ref(v.Text(1)), State: stateOf[v.Text(2)], Instance: v.Text(8)}
	if e.State == driver.StateInvalid {
		e.Instance, e.Problem, e.Raw, e.FoundAt = "", v.Text(8), rawOf(fields), wall(v.Text(6))
		return e
	}
	m, _, err := decode(v.List(10), v.Text(1))
	if err != nil {
		m = &driver.Message{Body: rawOf(fields)}
	}
	m.Topic, m.PublishedAt = p.topic, wall(v.Text(9))
	e.Message = m
	failed, _ := strconv.Atoi(v.Text(3))
	lost, _ := strconv.Atoi(v.Text(4))
	e.DueAt, e.ExpiresAt = wall(v.Text(6)), wall(v.Text(7))
	if e.Group == "" {
		return e
	}
	e.Attempt, e.Deliveries, e.History = failed+1, lost+1, historyOf(v.List(11))
	if record := v.List(12); e.State == driver.StateDone && len(record) == 3 {
		took, _ := strconv.ParseInt(record.Text(1), 10, 64)
		e.SettledAt, e.Took, e.Instance = wall(record.Text(0)), time.Duration(took), record.Text(2)
	}
	if e.State == driver.StateDead {
		rounds, _ := strconv.Atoi(v.Text(5))
		died := v.List(12) // when, where and why
		e.Dead = redisshell.DeadLetter(&e, wall(died.Text(0)), died.Text(1), died.Text(2), failed, lost, rounds)
	}
	return e
}

// rawOf shows an entry whole: of one field its value, of several all of them.
func rawOf(fields []string) []byte {
	if len(fields) == 2 {
		return []byte(fields[1])
	}
	var b strings.Builder
	for i := 0; i+1 < len(fields); i += 2 {
		b.WriteString(strconv.Quote(fields[i]) + " " + strconv.Quote(fields[i+1]) + "\n")
	}
	return []byte(b.String())
}

// historyOf reads failures as lua/settle.lua keeps them: time, attempt, failure.
func historyOf(l redisconn.Reply) []driver.Failure {
	var all []driver.Failure
	for _, x := range l {
		item := redisconn.ReplyOf(x)
		fs, err := envelope.DecodeHistory([]byte(item.Text(2)))
		if err != nil || len(fs) != 1 {
			continue
		}
		fs[0].At = wall(item.Text(0))
		fs[0].Attempt, _ = strconv.Atoi(item.Text(1))
		all = append(all, fs[0])
	}
	return all
}
