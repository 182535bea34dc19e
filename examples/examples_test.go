// Package examples_test runs every example and compares what it prints.
package examples_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ferrymq/ferry/internal/kafkatest"
	"github.com/ferrymq/ferry/internal/redistest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(kafkatest.Main(redistest.Main(m))) }

// want is what each example prints. The one that runs until it is told to stop has a test of its own.
var want = map[string]string{
	"start": `
order 4 of bob is billed, attempt 1
order 1 of ann is billed, attempt 2
order 2 of ann is billed, attempt 1
mail: see you again
`,
	"server": `
401 Unauthorized
token demo may view orders: true, mail: false
`,
	"alerts": `
five orders wait:
  slack got "*[WARNING] queue depth*\norders has 5 messages, more than 4"
a worker has handled them:
  slack got "*[RESOLVED] queue depth*\norders/default: over"
a breaker opens:
  slack got "*[CRITICAL] UserCircuitBreakerOpen*\nthe breaker billing is open"
  sms got "[CRITICAL] UserCircuitBreakerOpen"
`,
	"notify": `
success: 3 of 3 targets
  dingtalk was reached by dingtalk, attempts 2, failed before: 0
  webhook was reached by webhook, attempts 1, failed before: 0
  sms was reached by dingtalk, attempts 1, failed before: 1
what arrived:
  dingtalk: ops was told
  dingtalk: owner was told
  webhook got "Disk of db1 is full", signed: true
`,
	"admin": `
orders: Nothing consumes it: 5 messages wait. Check that a worker runs, and on this broker.
purge: done, 3 messages, dry run: true
purge: done, 3 messages, dry run: false
local me did topic.purge on orders where json >= 2
`,
	"delayed": `
start now  after 0s
drink tea  after 1s
stand up   after 1.5s
`,
	"cron": `
two instances run one schedule:
  the next tick is 1s after the first
  the next tick is 2s after the first
  the next tick is 3s after the first
paused, and triggered once more
nine o'clock on working days in Shanghai:
  2026-01-02T01:00:00Z
  2026-01-05T01:00:00Z
  2026-01-06T01:00:00Z
`,
	"avro": `
order 1: 20.00 EUR, from application/avro
order 2: 19.90 CNY, from application/avro
order 3: 5.00 USD, from application/json
avro: subject orders-value, level BACKWARD, version 2: the newer schema cannot read what the older one wrote: field country: reader field has no default and is missing from writer: give new fields a default and keep the types of old ones
`,
	"remote": `
billed over HTTP: a ferry boat
billed over HTTP: two oars
`,
	"sharedlimits": `
ann through web: published
ann through app: published
ann through web: published
ann through app: rate_limited
`,
	"priorities": `
of the first 100 handled: map[high:19 low:2 normal:5 urgent:74]
in the end:               map[high:100 low:100 normal:100 urgent:100]
`,
	"ordered": `
alice [0 1 2 3 4]
bob [0 1 2 3 4]
小明 [0 1 2 3 4]
`,
	"batch": `
batch of 10, 9 written so far
batch of 10, 19 written so far
batch of 5, 24 written so far
batch of 1, 25 written so far
`,
	"emit": `
order failed: its mail is not sent
order billed: its mail goes out
mail sent: thank you for the ferry boat
`,
	"autoscale": `
idle:        2 handlers, healthy
the wave:   32 handlers for 2000 mails
calm again:  2 handlers, healthy
`,
	"metrics": `
ferry_dead_letters_total{broker="default",group="billing",reason="max_attempts",topic="orders"} 1
ferry_messages_processed_total{broker="default",group="billing",result="ack",topic="orders"} 4
ferry_messages_processed_total{broker="default",group="billing",result="dead",topic="orders"} 1
ferry_messages_processed_total{broker="default",group="billing",result="drop",topic="orders"} 0
ferry_messages_processed_total{broker="default",group="billing",result="release",topic="orders"} 0
ferry_messages_processed_total{broker="default",group="billing",result="retry",topic="orders"} 1
ferry_messages_published_total{broker="default",topic="orders"} 5
ferry_topic_messages{broker="default",group="billing",state="dead",topic="orders"} 1
ferry_topic_messages{broker="default",group="billing",state="inflight",topic="orders"} 0
ferry_topic_messages{broker="default",group="billing",state="ready",topic="orders"} 0
ferry_topic_messages{broker="default",group="billing",state="waiting",topic="orders"} 0
ferry_up{broker="default"} 1
`,
	"tracing": `
POST /orders
  send orders
    process orders attempt=1 outcome=retry: billing did not answer
    process orders attempt=2 outcome=ack
      send mails
        process mails attempt=1 outcome=ack
`,
	"wecom": `
the callback URL is verified
a callback is answered with 200
a callback is answered with 200
a callback is answered with 403
ann: 你好
ann: 我的快递到哪了？
replies:
  to ann: 收到：你好
  to ann: 收到：我的快递到哪了？
`,
	"leader": `
ann leads
ann writes a report
ben leads
ben writes a report
ann writes late, refused: true
`,
	"results": `
running: 1 of 2 rows added
the sum is 42
true, it failed at attempt 1: nothing to report
`,
	"outbox": `
moon: sold out
ship boat
ship rope
`,
	"encryption": `
the broker has: zstd,aes-gcm;k=2026-01 readable: false smaller: true
with both keys: ann has nothing
with both keys: ben has a cold
without the new key: dead
replayed: 1
with it again: cem has a cough
`,
	"plugin": `
orders is refused: false
salaries is refused: true
order one is handled, attempt 1
counter: 1 orders published, 1 handled
`,
	"unique": `
a second report for ann is refused: true true
one for ben is not
ann's report is made: she may ask for the next
`,
	"spool": `
order 1 is accepted, spooled: false
alert: the broker is away
order 2 is accepted, spooled: true
order 3 is accepted, spooled: true
2 messages of 1 key wait on the disk
the broker is back
order 1 of ann
order 2 of ann
order 3 of ann
order 4 of ann
`,
	"transaction": `
committed:
  bills: rope
  parcels: rope
checked back:
  bills: boat
  parcels: boat
`,
	"fanout": `
line 1 has 3 words
line 2 has 2 words
line 3 has 6 words
in all 11
`,
	"ratelimit": `
robot  1: published
robot  2: published
robot  3: published
robot  4: published
robot  5: published
robot  6: rate_limited, try again in 10s
robot  7: rate_limited, try again in 10s
robot  8: rate_limited, try again in 1h0m0s
robot  9: key_blocked, try again in 1h0m0s
robot 10: key_blocked, try again in 1h0m0s
ann: unblock robot, because it was a load test
excited: 0 (attempt 1), 1 (attempt 1), 2 (attempt 1), 3 (attempt 1), 4 (attempt 1), had to wait: true
calm: hello (attempt 1), had to wait: false
5 messages at 2 a second took more than 2 s: true
`,
	"groups": `
published 3, billed 3 (after 3 failures), shipped 3
`,
	"deadletter-replay": `
3 dead: downstream_error: billing did not answer within # ms
3 dead: fatal: order has no user
would mend 3, skip 0
mended 3:
  billed order 1 to user 1
  billed order 3 to user 1
  billed order 5 to user 1
brought back by the recoverer:
  billed order 2 to user 2
  billed order 4 to user 2
  billed order 6 to user 2
recovered 3, 0 dead letters left
`,
	"deadletters": `
billed: fine
dead: declined  card_declined: insufficient funds, 1 attempts, advice: manual_review
dead: unlucky   max_attempts: timeout to billing after 3s, 3 attempts, advice: delayed_retry
billed: unlucky
`,
}

// build compiles all examples at once and returns the directory of their programs.
func build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./...").CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

func TestExamples(t *testing.T) {
	t.Parallel()
	bin := build(t)
	programs, err := os.ReadDir(bin)
	if err != nil {
		t.Fatal(err)
	}
	if len(programs) != len(want)+1 {
		t.Errorf("there are %d examples, %d are tested", len(programs), len(want)+1)
	}
	t.Run("each", func(t *testing.T) {
		for name, text := range want {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				prints(t, filepath.Join(bin, name), "", text)
			})
		}
		run := strings.ToLower(rand.Text()) // with -count the servers are the same
		for _, name := range anywhere {
			t.Run(name+" on Redis", func(t *testing.T) {
				t.Parallel()
				prints(t, filepath.Join(bin, name), redistest.Shared(t).URL()+"?prefix=examples-"+run+name, want[name])
			})
			t.Run(name+" on Kafka", func(t *testing.T) {
				t.Parallel()
				prints(t, filepath.Join(bin, name), "kafka://"+kafkatest.Shared(t).Addrs()[0]+"/?namespace=examples-"+run+name+".",
					want[name])
			})
		}
		t.Run("orders", func(t *testing.T) {
			t.Parallel()
			runOrders(t, filepath.Join(bin, "orders"))
		})
	})
}

// anywhere are those that print the same on every broker, however slow it is.
var anywhere = []string{"ordered", "emit", "groups", "deadletters", "deadletter-replay", "leader", "results", "fanout",
	"outbox", "unique", "transaction"}

// prints runs an example on a broker, or on its own, and demands what it prints.
func prints(t *testing.T, program, broker, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, program)
	c.Env = []string{"FERRY_BROKER=" + broker}
	var logged bytes.Buffer
	c.Stderr = &logged
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, out, &logged)
	}
	if diff := cmp.Diff(strings.TrimPrefix(text, "\n"), string(out)); diff != "" {
		t.Errorf("it prints something else (-want +got):\n%s", diff)
	}
}

// runOrders waits until the program of the README has billed its order, ten seconds after it was published, and stops
// it as a service manager does.
func runOrders(t *testing.T, program string) {
	c := exec.CommandContext(t.Context(), program)
	c.Env = []string{} // no FERRY_BROKER: it runs on its own
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	billed := false
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		if strings.Contains(lines.Text(), "INFO subscribed topic=orders") {
			continue
		}
		if !strings.Contains(lines.Text(), "billed id=1 attempt=1") {
			t.Errorf("it logs %q", lines.Text())
			continue
		}
		billed = true
		if early := 10*time.Second - time.Since(begin); early > 0 {
			t.Errorf("the order was handled %v early", early)
		}
		if err := c.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
	}
	if err := c.Wait(); err != nil {
		t.Errorf("it did not stop cleanly: %v", err)
	}
	if !billed {
		t.Error("the order was not billed")
	}
}
