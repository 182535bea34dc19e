package server

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/auth"
	"github.com/ferrymq/ferry/cluster"
	"github.com/ferrymq/ferry/driver/redis"
	"github.com/ferrymq/ferry/internal/redistest"
)

// TestStop: /readyz fails first, what is under way is finished, streams end, and then the port is free.
func TestStop(t *testing.T) {
	t.Parallel()
	began, release := make(chan struct{}), make(chan struct{})
	r := start(t, Options{Mounts: []Mount{
		{Path: "/slow", Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(began)
			<-release
			_, _ = io.WriteString(w, "whole")
		})},
		{Path: "/stream", Public: true, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ":\n\n")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		})},
	}})
	res, err := r.http.Get(r.URL() + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	stream := bufio.NewReader(res.Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	slow := make(chan string, 1)
	go func() { slow <- r.do("GET", "/slow", "").text }()
	<-began
	stopped := make(chan error, 1)
	go func() { stopped <- r.stop() }()
	if _, err := io.Copy(io.Discard, stream); err != nil {
		t.Errorf("the stream did not end well: %v", err)
	}
	_ = res.Body.Close()
	if !r.stopping.Load() {
		t.Error("streams end before the server says that it is not ready")
	}
	select {
	case err := <-stopped:
		t.Fatalf("it stopped while a request was under way: %v", err)
	default:
	}
	close(release)
	if got := <-slow; got != "whole" {
		t.Errorf("the request under way was answered with %q", got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	l, err := net.Listen("tcp", strings.TrimPrefix(r.URL(), "http://"))
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	_ = l.Close()
}

// TestNotReadyWhileStopping: /readyz and /healthz fail, /livez does not.
func TestNotReadyWhileStopping(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	r.stopping.Store(true)
	for path, want := range map[string]int{"/livez": 200, "/readyz": 503, "/healthz": 503} {
		if a := r.do("GET", path, ""); a.StatusCode != want {
			t.Errorf("%s: %s", path, a.Status)
		}
	}
}

// TestBrokerAway: without its broker the server is not ready, and says nothing of the reason to others.
func TestBrokerAway(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	token := r.token()
	_ = r.o.Broker.Close(context.Background())
	if a := r.do("GET", "/readyz", ""); a.StatusCode != 503 {
		t.Errorf("%s", a.Status)
	}
	r.do("GET", "/api/", "", "Authorization", token).problem(t, 503, "unavailable")
}

func TestHealth(t *testing.T) {
	t.Parallel()
	r := start(t, Options{})
	ctx := context.Background()
	if _, err := r.o.Broker.Publish(ctx, &ferry.Message{Topic: "orders", Body: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	if a := r.do("GET", "/healthz", ""); a.StatusCode != 200 || strings.Contains(a.text, "queue_size") ||
		strings.Contains(a.text, "orders") {
		t.Errorf("anybody reads %s", a.text)
	}
	a := r.do("GET", "/healthz", "", "Authorization", r.token())
	for _, must := range []string{`"status":`, `"queue_size":`, `"workers":`, `"uptime":`} {
		if !strings.Contains(a.text, must) {
			t.Errorf("%s lacks %s", a.text, must)
		}
	}
}

// TestProblemsOfMounts: what is mounted may be degraded although the broker is well, and only who may view all learns
// why.
func TestProblemsOfMounts(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Problems: func(context.Context) []string { return []string{"kf1 was never pulled"} }})
	if a := r.do("GET", "/healthz", ""); a.StatusCode != 200 || !strings.Contains(a.text, "degraded") ||
		strings.Contains(a.text, "kf1") {
		t.Errorf("anybody reads %s", a.text)
	}
	if a := r.do("GET", "/healthz", "", "Authorization", r.token()); !strings.Contains(a.text, "kf1 was never pulled") {
		t.Error(a.text)
	}
}

// TestMember: the server is seen among the members, and leaves.
func TestMember(t *testing.T) {
	t.Parallel()
	b, ctx := memoryBroker(t), context.Background()
	r := start(t, Options{Broker: b, Name: "front-1"})
	if _, _, err := b.Driver().KV().Changes(ctx, "members", 0); err != nil {
		t.Fatal(err)
	}
	members, err := cluster.Members(ctx, b)
	if err != nil || len(members) != 1 || members[0].Name != "front-1" || members[0].Address != r.URL() ||
		members[0].Labels["role"] != "server" {
		t.Errorf("%+v, %v", members, err)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	if members, _ := cluster.Members(ctx, b); len(members) != 0 {
		t.Errorf("%+v", members)
	}
}

// writeCertificate writes a certificate with a serial number, of this machine.
func writeCertificate(t *testing.T, dir string, serial int64) Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	c := Certificate{File: filepath.Join(dir, "cert.pem"), Key: filepath.Join(dir, "key.pem")}
	for name, block := range map[string]*pem.Block{c.File: {Type: "CERTIFICATE", Bytes: der},
		c.Key: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := start(t, Options{Certificate: writeCertificate(t, dir, 1), Mounts: []Mount{whoami}})
	dial := func(most uint16) (*tls.Conn, error) {
		return tls.Dial("tcp", strings.TrimPrefix(r.URL(), "https://"),
			&tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS10, MaxVersion: most})
	}
	serial := func() int64 {
		t.Helper()
		c, err := dial(0)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if _, err := dial(tls.VersionTLS11); err == nil {
		t.Error("TLS 1.1 is spoken")
	}
	writeCertificate(t, dir, 2)
	if got := serial(); got != 1 {
		t.Errorf("certificate %d", got)
	}
	if err := r.Reload(Limits{}); err != nil || serial() != 2 {
		t.Errorf("certificate %d, %v", serial(), err)
	}
	if err := os.WriteFile(filepath.Join(dir, "key.pem"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Reload(Limits{Body: 1}); err == nil || serial() != 2 || r.limits.Load().Body == 1 {
		t.Errorf("a wrong key: %v", err)
	}
	r.http.Transport.(*http.Transport).TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	_, code, _ := strings.Cut(r.LoginURL(), "once=")
	a := r.form("once=" + code)
	if c := a.Cookies()[0]; !c.Secure || c.Name != "__Host-ferry" || a.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("%+v %v", c, a.Header)
	}
	if a := r.do("GET", "/api/", "", "Cookie", a.cookie(t)); a.text != "local terminal" {
		t.Errorf("%s %s", a.Status, a.text)
	}
}

// TestTwoServers: a session of one server is good at another, and when the first is gone.
func TestTwoServers(t *testing.T) {
	t.Parallel()
	o := redis.Options{URL: redistest.Shared(t).URL(), Prefix: strings.ToLower(rand.Text())}
	open := func() *ferry.Broker {
		b, err := redis.Open(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = b.Close(context.Background()) })
		return b
	}
	one, other := start(t, Options{Broker: open(), Mounts: []Mount{whoami}}),
		start(t, Options{Broker: open(), Mounts: []Mount{whoami}})
	cookie, token := one.onceCookie(), one.token()
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	if a := other.do("GET", "/api/", "", "Cookie", cookie); a.text != "local terminal" {
		t.Errorf("%s %s", a.Status, a.text)
	}
	if a := other.do("GET", "/api/", "", "Authorization", token); a.text != "token test" {
		t.Errorf("%s %s", a.Status, a.text)
	}
}

// TestCanaries: no secret that passes the server stands in its log or in an answer that is not the one that gives it.
func TestCanaries(t *testing.T) {
	t.Parallel()
	r := start(t, Options{Mounts: []Mount{whoami}})
	r.user("ann", "Canary7-password", auth.Administrator)
	token := r.token()
	_, once, _ := strings.Cut(r.LoginURL(), "once=")
	a := r.form("name=ann&password=Canary7-password")
	cookie := a.cookie(t)
	_, session, _ := strings.Cut(cookie, "=")
	answers := []string{a.text}
	for _, a := range []answer{
		r.form("name=Canary7-name&password=Canary7-wrong"), r.form("once=Canary7-once"),
		r.do("POST", "/login", `{"name":"ann","password":"Canary7-json"`, "Content-Type", "application/json"),
		r.do("GET", "/api/?token=Canary7-query", "", "Authorization", token), r.do("GET", "/api/", "", "Cookie",
			cookie),
		r.do("GET", "/nothing?x=Canary7-query", "", "Authorization", "Bearer ferry_x_Canary7-bearer"),
		r.do("GET", "/api/", "", "Cookie", "ferry=Canary7-cookie"), r.do("POST", "/logout", "", "Cookie", cookie),
	} {
		answers = append(answers, a.text)
	}
	if err := r.stop(); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(answers, "\n") + r.logs.String()
	for _, canary := range []string{"Canary7-password", "Canary7-wrong", "Canary7-once", "Canary7-json",
		"Canary7-query", "Canary7-bearer", "Canary7-cookie",
		strings.TrimPrefix(token, "Bearer "), once, session} {
		if strings.Contains(all, canary) {
			t.Errorf("%s is in a log or an answer", canary)
		}
	}
}

// TestStopOfWhatWaits: a request that waits for work is ended by its mount, and does not hold the server up.
func TestStopOfWhatWaits(t *testing.T) {
	t.Parallel()
	began, over := make(chan struct{}), make(chan struct{})
	r := start(t, Options{StopTimeout: time.Hour, Mounts: []Mount{{
		Path: "/wait", Public: true,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(began)
			<-over
			_, _ = io.WriteString(w, "nothing")
		}),
		Stop: func(context.Context) error { close(over); return nil },
	}}})
	waited := make(chan string, 1)
	go func() { waited <- r.do("GET", "/wait", "").text }()
	<-began
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	if got := <-waited; got != "nothing" {
		t.Errorf("the request that waited got %q", got)
	}
}

// TestMountsRun: what a mount does in the background goes on until the last request has ended.
func TestMountsRun(t *testing.T) {
	t.Parallel()
	begun, ended := make(chan struct{}), make(chan struct{})
	r := start(t, Options{Mounts: []Mount{{Path: "/x", Handler: http.NotFoundHandler(),
		Run: func(ctx context.Context) error {
			close(begun)
			<-ctx.Done()
			close(ended)
			return nil
		}}}})
	<-begun
	if err := r.stop(); err != nil {
		t.Error(err)
	}
	<-ended
}
