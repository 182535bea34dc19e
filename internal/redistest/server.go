package redistest

import (
	"crypto/tls"
	"net"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/ferrymq/ferry/internal/netns"
)

// Server is one Redis process, or its files and its port while it is down. Its methods may be called concurrently.
type Server struct {
	spec    spec
	version version
	binary  string
	port    port
	host    *netns.Host // nil: this machine itself
	parted  atomic.Bool // by Network.Part

	mu      sync.Mutex
	process *process // the last one started
}

// StartSingle starts one server with its files in dir. Programs use it; tests use Single.
func StartSingle(dir string, o Options) (*Server, error) {
	a, err := authorityFor(o, dir)
	if err != nil {
		return nil, err
	}
	return launch(spec{dir: dir, options: o, authority: a})
}

// String names the version and the address.
func (s *Server) String() string {
	return s.version.name + " at " + s.Addr()
}

// Addr is the host and port, the same after each restart.
func (s *Server) Addr() string {
	return net.JoinHostPort(s.host.IP(), strconv.Itoa(s.port.number))
}

// URL is the address with the default user's password: redis://, or rediss:// with TLS.
func (s *Server) URL() string {
	return s.URLAs("", s.spec.options.Password)
}

// URLAs is the address for one of the users of Options.ACL.
func (s *Server) URLAs(user, password string) string {
	return location("", s.spec.authority, user, password, s.Addr(), "")
}

// location builds the URL of a server or a set: kind is "", "+sentinel" or "+cluster".
func location(kind string, a *authority, user, password, hosts, path string) string {
	u := url.URL{Scheme: "redis" + kind, Host: hosts, Path: path}
	if a != nil {
		u.Scheme = "rediss" + kind
	}
	if password != "" {
		u.User = url.UserPassword(user, password)
	}
	return u.String()
}

// TLSConfig trusts the server and shows a client certificate. It is nil without Options.TLS.
func (s *Server) TLSConfig() *tls.Config {
	if s.spec.authority == nil {
		return nil
	}
	return s.spec.authority.config.Clone()
}

// TLSFiles are the paths of the authority's certificate, and of a client certificate with its key. Empty without TLS.
func (s *Server) TLSFiles() (ca, cert, key string) {
	if a := s.spec.authority; a != nil {
		return a.caFile, a.certFile, a.keyFile
	}
	return "", "", ""
}

// Command runs one command on a connection of its own, as the default user. An answered error is a ReplyError.
func (s *Server) Command(args ...string) (Reply, error) {
	return ask(s.Addr(), s.spec.options.Password, s.TLSConfig(), args...)
}

// PID is the number of the process, or of the last one while the server is down.
func (s *Server) PID() int {
	return s.current().pid()
}

// Running tells whether the process lives; a stopped one does.
func (s *Server) Running() bool {
	return s.current().running()
}

// Kill ends the process with SIGKILL and returns when it is gone. It does nothing when the server is down.
func (s *Server) Kill() {
	s.current().kill()
}

// Restart starts the server again on its port with its files, and returns when it has loaded them. It kills it first.
func (s *Server) Restart() error {
	s.Kill()
	return s.start()
}

// Stop freezes the process with SIGSTOP: connections stay open and nothing answers.
func (s *Server) Stop() error {
	p := s.current()
	p.frozen.Store(true)
	return p.signal(syscall.SIGSTOP)
}

// Continue lets a stopped process run on.
func (s *Server) Continue() error {
	p := s.current()
	p.frozen.Store(false)
	return p.signal(syscall.SIGCONT)
}

// Log is all the server has printed since it was first started.
func (s *Server) Log() string {
	return s.logTail(-1)
}

// Close ends the process for good and gives its port back. The files stay.
func (s *Server) Close() {
	s.Kill()
	s.port.release()
}

// answering is false while a question would only run into its timeout, or get the answer of one who knows nothing new.
func (s *Server) answering() bool {
	p := s.current()
	return p.running() && !p.frozen.Load() && !s.parted.Load()
}

func (s *Server) current() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// info returns one field of INFO, empty when there is none.
func (s *Server) info(section, name string) (string, error) {
	reply, err := s.Command("INFO", section)
	if err != nil {
		return "", err
	}
	return field(reply.Text, name), nil
}

func addrs(servers []*Server) []string {
	list := make([]string, len(servers))
	for i, s := range servers {
		list[i] = s.Addr()
	}
	return list
}
