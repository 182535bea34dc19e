package redistest

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// Reply is an answer of a server. Text is also set for numbers; a nil answer has Null.
type Reply struct {
	Text string
	List []Reply
	Null bool
}

// ReplyError is an error that a server answered, such as "READONLY You can't write against a read only replica."
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

const commandTimeout = 30 * time.Second

// ask sends one command on a connection of its own. It speaks the protocol itself, so that drivers are not tested with
// their own client.
func ask(addr, password string, secure *tls.Config, args ...string) (Reply, error) {
	conn, err := net.DialTimeout("tcp", addr, commandTimeout)
	if err != nil {
		return Reply{}, err
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(time.Now().Add(commandTimeout)); err != nil {
		return Reply{}, err
	}
	if secure != nil {
		conn = tls.Client(conn, secure)
	}
	r := bufio.NewReader(conn)
	if password != "" {
		if _, err := exchange(conn, r, "AUTH", password); err != nil {
			return Reply{}, err
		}
	}
	return exchange(conn, r, args...)
}

func exchange(w io.Writer, r *bufio.Reader, args ...string) (Reply, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return Reply{}, err
	}
	return readReply(r)
}

func readReply(r *bufio.Reader) (Reply, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return Reply{}, err
	}
	line = strings.TrimSuffix(line, "\r\n")
	if line == "" {
		return Reply{}, errors.New("an empty line instead of a reply")
	}
	kind, rest := line[0], line[1:]
	switch kind {
	case '+', ':':
		return Reply{Text: rest}, nil
	case '-':
		return Reply{}, ReplyError(rest)
	case '$', '*':
		n, err := strconv.Atoi(rest)
		if err != nil || n < 0 {
			return Reply{Null: true}, err
		}
		if kind == '$' {
			return readBulk(r, n)
		}
		return readList(r, n)
	}
	return Reply{}, fmt.Errorf("a reply of an unknown kind: %q", line)
}

func readBulk(r *bufio.Reader, n int) (Reply, error) {
	text := make([]byte, n+len("\r\n"))
	_, err := io.ReadFull(r, text)
	return Reply{Text: string(text[:n])}, err
}

// readList keeps errors inside a list, as EXEC answers them, as texts.
func readList(r *bufio.Reader, n int) (Reply, error) {
	list := Reply{List: make([]Reply, 0, n)}
	for range n {
		item, err := readReply(r)
		var answered ReplyError
		if errors.As(err, &answered) {
			item.Text = string(answered)
		} else if err != nil {
			return Reply{}, err
		}
		list.List = append(list.List, item)
	}
	return list, nil
}

// field returns the value of a line "name:value", as INFO has them.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
