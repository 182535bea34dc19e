package redisstream

import (
	"strconv"
	"strings"

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

// entry makes an entry of what lua/view.lua tells.
func (p *partition) entry(v redisconn.Reply) driver.Entry {
	m, _, err := decode(v.List(10), v.Text(1))
	if err != nil {
		m = nil
	}
	return redisshell.EntryOf(v, p.t.Name, p.ref(v.Text(1)), m, func() []byte { return rawOf(v.Texts(10)) })
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

// ref is the place of a stream entry: its id in two numbers. What is not in the stream has none.
func (p *partition) ref(id string) driver.Ref {
	ms, seq, ok := strings.Cut(id, "-")
	pos, err1 := strconv.ParseUint(ms, 10, 64)
	sub, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return driver.Ref{}
	}
	return driver.Ref{Partition: int32(p.index), Pos: pos, Sub: sub}
}

// streamID undoes ref.
func streamID(r driver.Ref) string {
	return strconv.FormatUint(r.Pos, 10) + "-" + strconv.FormatUint(r.Sub, 10)
}
