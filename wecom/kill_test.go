package wecom_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/ferrymq/ferry/open"
	"github.com/ferrymq/ferry/wecom"
)

// child pulls in a process of its own until it is killed. It reports false in that of the tests.
func child() bool {
	url, ok := os.LookupEnv("FERRY_CHILD_BROKER")
	if !ok {
		return false
	}
	ctx := context.Background()
	config, err := wecom.FromEnvironment(os.LookupEnv)
	if err != nil {
		panic(err)
	}
	b, err := open.URL(ctx, url)
	if err != nil {
		panic(err)
	}
	p, err := wecom.New(b, config, wecom.Options{Lease: b.Driver().Capabilities().MinLease})
	if err != nil {
		panic(err)
	}
	fmt.Println("ended:", p.Run(ctx))
	return true
}

// puller starts a child that pulls.
func (s *storm) puller(url string) *exec.Cmd {
	c := exec.Command(os.Args[0])
	config := s.vendor.Config()
	c.Env = append(os.Environ(), "FERRY_CHILD_BROKER="+url, "FERRY_WECOM_CORP="+config.Corp,
		"FERRY_WECOM_SECRET="+string(config.Secret), "FERRY_WECOM_VENDOR="+config.Vendor,
		"FERRY_WECOM_ALLOW_PRIVATE=127.0.0.0/8")
	s.ok(c.Start())
	return c
}

const (
	// killBurst is how many messages come before a puller is killed.
	killBurst = 500
	// killsFor is how many messages of a torture are worth as many kills as a test has.
	killsFor = 4000
)

// A puller that is killed in the middle of its work loses nothing, and publishes nothing twice where ids are known for
// long. Each of them is killed after some pages, wherever it is then.
func TestKilledPullers(t *testing.T) {
	t.Parallel()
	for name, kills := range map[string]int{"redis": 4, "redisstream": 4, "kafka": 1} { // where one costs a session of 6 s
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kills := kills * max(1, tortured()/killsFor)
			url := places[name](t).url
			s := newStorm(t, url, 10)
			s.start(s.handler)
			s.kill(url, kills)
			last := s.puller(url)
			s.finish(kills*killBurst, name != "kafka")
			_ = last.Process.Kill()
			_ = last.Wait()
		})
	}
}

// kill has customers write, and kills who pulls it, again and again.
func (s *storm) kill(url string, kills int) {
	random := rand.New(rand.NewPCG(1, uint64(kills)))
	said := map[string]int{}
	for range kills {
		for i := range killBurst {
			s.say("kf1", fmt.Sprint("user-", i%50), said)
		}
		s.call("kf1")
		c := s.puller(url)
		until := s.vendor.Calls("kf/sync_msg") + 1 + random.IntN(40)
		for s.vendor.Calls("kf/sync_msg") < until {
			time.Sleep(time.Duration(random.IntN(3000)) * time.Microsecond)
		}
		_ = c.Process.Kill() // SIGKILL
		_ = c.Wait()
	}
	s.call("kf1")
}
