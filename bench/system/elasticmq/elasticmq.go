// Package elasticmq is the peer ElasticMQ: a queue in memory behind the API of Amazon SQS, a server of its own, spoken
// to over HTTP/1.1 on this machine.
package elasticmq

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/ferrymq/ferry/bench/system"
)

// System is the server that Prepare has started.
type System struct{}

// Info describes it.
func (System) Info() system.Info {
	return system.Info{
		Name: "ElasticMQ", Version: version,
		Settings: fmt.Sprintf("a child process on loopback TCP with a heap of 2 GiB, all else default, one for all "+
			"measurements, warmed up with %d messages one by one and as many batches; each measurement has a queue of its own; "+
			"SQS in JSON with bodies in base64 over net/http; batches of %d, all of a call at once; %d consumers, each "+
			"receives %d and deletes them in one request", warming, most, consumers, most),
		Why: "10 is the largest batch of the API; JSON is the newer of its two protocols; of 4, 16 and 64 consumers 16 " +
			"took the least processor time",
	}
}

// Lacks says what cannot be measured: nothing, if no server was started.
func (System) Lacks(f system.Feature) string {
	switch {
	case os.Getenv(addrVariable) == "":
		return "no server was started for this run: see scripts/elasticmq.sh"
	case f == system.Backlog || f == system.Batches || f == system.Consumes:
		return ""
	}
	return "it is compared by rates alone"
}

// Open makes a queue.
func (System) Open(ctx context.Context, _ system.Options) (system.Session, error) {
	s := &session{url: "http://" + os.Getenv(addrVariable) + "/",
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2048, DisableCompression: true}}}
	var made struct {
		QueueURL string `json:"QueueUrl"`
	}
	err := s.call(ctx, "CreateQueue", map[string]any{"QueueName": rand.Text()}, &made)
	s.queue = made.QueueURL
	return s, err
}

type session struct {
	url, queue string
	client     *http.Client
}

func (s *session) Publisher() system.Publisher { return publisher{s} }

// call makes one request of SQS. What fails of a batch fails the call.
func (s *session) call(ctx context.Context, action string, q, answer any) error {
	body, err := json.Marshal(q)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.0")
	r.Header.Set("X-Amz-Target", "AmazonSQS."+action)
	res, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err == nil && (res.StatusCode != http.StatusOK || bytes.Contains(data, []byte(`"Failed":[{`))) {
		err = fmt.Errorf("%s was answered with status %d: %.200s", action, res.StatusCode, data)
	}
	if err != nil || answer == nil {
		return err
	}
	return json.Unmarshal(data, answer)
}

// attributes are what the server says of a queue, as texts.
var attributes = []string{"ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"}

// Settled waits until the server says that nothing is left.
func (s *session) Settled(ctx context.Context) error {
	for {
		var got struct{ Attributes map[string]string }
		if err := s.call(ctx, "GetQueueAttributes", map[string]any{"QueueUrl": s.queue, "AttributeNames": attributes},
			&got); err != nil {
			return err
		}
		if got.Attributes[attributes[0]] == "0" && got.Attributes[attributes[1]] == "0" {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not everything is deleted (%v): %w", got.Attributes, context.Cause(ctx))
		case <-time.After(time.Millisecond):
		}
	}
}

// Usage is the processor time of the server.
func (s *session) Usage() (system.Usage, error) {
	cpu, err := system.ProcessorTime(os.Getenv(pidVariable))
	return system.Usage{CPU: cpu}, err
}

func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	defer s.client.CloseIdleConnections()
	return s.call(ctx, "DeleteQueue", map[string]any{"QueueUrl": s.queue}, nil)
}

var errNoAsync = errors.New("a request is answered")
