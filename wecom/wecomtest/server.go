package wecomtest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/ferrymq/ferry/wecom"
)

// Options of a Server. The zero value is a well-behaved vendor.
type Options struct {
	// Corp defaults to "ww0123456789abcdef".
	Corp string
	// TokenLasts is how long an access token is good for. Defaults to 2 hours.
	TokenLasts time.Duration
	// Page is how many messages a pull returns at most. Defaults to 1000.
	Page int
	// Again gives every nth message a second time, later. Defaults to never.
	Again int
	// Empty makes every nth page empty although there is more. Defaults to never.
	Empty int
	// Tokenless is how many pulls without a callback's token an account allows in a minute. Defaults to 10.
	Tokenless int
	// Patience is how long an answer to a callback may take before it is sent again. Defaults to 5 s.
	Patience time.Duration
}

// Server is the vendor. It is safe for concurrent use.
type Server struct {
	o      Options
	pair   wecom.KeyPair
	secret wecom.Secret
	http   *httptest.Server
	out    *http.Client // sends callbacks

	closing   chan struct{} // closed by Close: slow answers do not wait for their time
	closeOnce sync.Once

	mu       sync.Mutex
	tokens   map[string]time.Time // access tokens and their ends
	accounts map[string]*account
	epoch    int // of cursors: those of an earlier one are refused
	sequence int
	faults   map[string]*fault
	delays   map[string]*fault
	calls    map[string]int
	sent     []Sent
	replyIDs map[string]bool
	sessions map[string]*session
	files    map[string][]byte
}

type account struct {
	log       []json.RawMessage
	times     []time.Time
	msgTokens map[string]time.Time
	tokenless []time.Time // of the last minute
	pages     int
	silk      bool
}

type session struct {
	state    wecom.State
	servicer string
	lastSaid time.Time
	replies  int
}

// fault is what becomes of the next calls of a kind.
type fault struct {
	times, code int
	delay       time.Duration
	status      int // not 0: of an answer that is not the vendor's
	body        string
}

// Start starts a vendor on an address of this machine. Close it in the end.
func Start(o Options) *Server {
	if o.Corp == "" {
		o.Corp = "ww0123456789abcdef"
	}
	if o.TokenLasts == 0 {
		o.TokenLasts = 2 * time.Hour
	}
	if o.Page == 0 {
		o.Page = 1000
	}
	if o.Tokenless == 0 {
		o.Tokenless = 10
	}
	if o.Patience == 0 {
		o.Patience = 5 * time.Second
	}
	s := &Server{o: o, closing: make(chan struct{}), secret: wecom.Secret(rand.Text()),
		out:    &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}},
		pair:   wecom.KeyPair{Token: wecom.Secret(rand.Text()), AESKey: wecom.Secret((rand.Text() + rand.Text())[:42] + "A")},
		tokens: map[string]time.Time{}, accounts: map[string]*account{}, calls: map[string]int{},
		faults: map[string]*fault{}, delays: map[string]*fault{},
		replyIDs: map[string]bool{}, sessions: map[string]*session{}, files: map[string][]byte{}}
	s.http = httptest.NewServer(s.routes())
	return s
}

// Close ends the server and its connections.
func (s *Server) Close() {
	s.closeOnce.Do(func() { close(s.closing) })
	s.out.CloseIdleConnections()
	s.http.Close()
}

// Config is what a pipeline needs to work with this vendor.
func (s *Server) Config() wecom.Config {
	return wecom.Config{Corp: s.o.Corp, Secret: s.secret, Keys: []wecom.KeyPair{s.keyPair()}, Vendor: s.http.URL,
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}}
}

// ChangeKeys has callbacks signed and encrypted by another pair from now on, as when it is changed in the console.
func (s *Server) ChangeKeys(pair wecom.KeyPair) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pair = pair
}

// keyPair is the one of callbacks.
func (s *Server) keyPair() wecom.KeyPair {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pair
}

// Say has a customer write a text, and returns its msgid.
func (s *Server) Say(account, user, text string) string {
	id := s.id()
	s.Add(account, user, map[string]any{
		"msgid": id, "open_kfid": account, "external_userid": user, "send_time": time.Now().Unix(),
		"origin":  wecom.FromCustomer,
		"msgtype": wecom.KindText, "text": wecom.Text{Content: text},
	})
	return id
}

// Add adds a message of any form to an account; the user, if there is one, may be replied to from now on.
func (s *Server) Add(to, user string, message any) {
	raw, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("wecomtest: the message cannot be encoded: %v", err)) // a mistake in a test
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, now := s.account(to), time.Now()
	a.append(raw, now)
	if n := len(a.log); s.o.Again > 0 && n%s.o.Again == 0 {
		a.append(a.log[n-1-(n/s.o.Again)%min(n, 100)], now) // one of the last hundred comes again
	}
	if user != "" {
		one := s.session(to, user)
		one.lastSaid, one.replies = now, 0
	}
}

func (a *account) append(raw json.RawMessage, at time.Time) {
	a.log, a.times = append(a.log, raw), append(a.times, at)
}

func (s *Server) id() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sequence++
	return fmt.Sprintf("msg-%d-%s", s.sequence, strings.ToLower(rand.Text()[:8]))
}

// account returns an account, which is made if there is none. The lock is held.
func (s *Server) account(name string) *account {
	a := s.accounts[name]
	if a == nil {
		a = &account{msgTokens: map[string]time.Time{}}
		s.accounts[name] = a
	}
	return a
}

func (s *Server) session(account, user string) *session {
	key := account + "/" + user
	if s.sessions[key] == nil {
		s.sessions[key] = &session{}
	}
	return s.sessions[key]
}

// Fail answers the next calls of a kind ("kf/sync_msg") with an error code.
func (s *Server) Fail(call string, times, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[call] = &fault{times: times, code: code}
}

// Break answers the next calls of a kind with a status and a text of any form, as something between us and the vendor
// does that is not well.
func (s *Server) Break(call string, times, status int, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[call] = &fault{times: times, status: status, body: body}
}

// Slow answers the next calls of a kind after a delay, those that fail included.
func (s *Server) Slow(call string, times int, delay time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.delays[call] = &fault{times: times, delay: delay}
}

// ExpireTokens ends all access tokens, whoever uses them.
func (s *Server) ExpireTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.tokens)
}

// ForgetCursors has all cursors refused that were given so far.
func (s *Server) ForgetCursors() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.epoch++
}

// Silk reports whether the last pull of an account asked for voices in Silk, not in AMR.
func (s *Server) Silk(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.account(account).silk
}

// Calls returns how often a call was made ("kf/sync_msg"), failed ones included.
func (s *Server) Calls(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

// Store has the vendor keep a file that messages can name.
func (s *Server) Store(id string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[id] = content
}

// Sent is a reply that the vendor took.
type Sent struct {
	Account, User, ID string
	Kind              wecom.Kind
	// Text is that of a text.
	Text string
}

// Sent returns the replies that the vendor took, in their order.
func (s *Server) Sent() []Sent {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Sent(nil), s.sent...)
}
