package deadletter_test

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/ferrymq/ferry/deadletter"
	"github.com/ferrymq/ferry/driver"
	"github.com/ferrymq/ferry/internal/redistest"
	"github.com/ferrymq/ferry/open"
)

// What the child process is told.
const (
	childURL = "FERRY_TEST_REPLAY_URL"
	childTo  = "FERRY_TEST_REPLAY_TO"
)

// replayInChild replays everything, and prints a line for each letter.
func replayInChild() int {
	b, err := open.URL(context.Background(), os.Getenv(childURL))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	queue, err := deadletter.New(b)
	if err == nil {
		_, err = queue.Replay(context.Background(),
			deadletter.ReplayOptions{To: os.Getenv(childTo), Selection: deadletter.Selection{Topic: topic},
				Rate: 4000, Each: func(o deadletter.LetterReport) { tellParent(o.ID) }})
	}
	if err := errors.Join(err, b.Close(context.Background())); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// tellParent prints a line, and waits until it was read: the child never runs ahead of the kill.
func tellParent(line string) {
	fmt.Println(line)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// replayUntilKilled runs the child, kills it after some lines, and reports whether it came to its end before.
func replayUntilKilled(t *testing.T, url, to string, lines int) bool {
	t.Helper()
	c := exec.Command(os.Args[0], "-test.run=^$")
	c.Env = append(os.Environ(), childURL+"="+url, childTo+"="+to)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for s := bufio.NewScanner(out); s.Scan(); {
		if lines--; lines == 0 {
			_ = c.Process.Kill()
		}
		_, _ = in.Write([]byte{'\n'}) // fails once it is dead
	}
	err = c.Wait()
	if lines > 0 && err != nil {
		t.Fatalf("the replay failed by itself: %v", err)
	}
	return err == nil
}

// Each dead letter ends exactly once in the queue, however often whoever replays is killed.
//
// Lesson: L48
func TestReplayUnderKill(t *testing.T) {
	t.Parallel()
	server := redistest.Single(t, redistest.Options{AOF: "always"})
	for _, to := range []string{"", "rescue"} {
		for name, url := range map[string]string{"disk": "disk://" + t.TempDir(),
			"redis": server.URL() + "?prefix=k" + rand.Text()} {
			t.Run(fmt.Sprintf("%s to %q", name, to), func(t *testing.T) {
				t.Parallel()
				replayUnderKill(t, url, to)
			})
		}
	}
}

func replayUnderKill(t *testing.T, url, to string) {
	const letters = 400
	opened := func(use func(k *kit)) {
		b, err := open.URL(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		use(newKit(t, b))
		if err := b.Close(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	opened(func(k *kit) {
		if to != "" {
			k.ok(k.d.EnsureGroup(k.ctx(), to, driver.DefaultGroup, driver.GroupOptions{}))
		}
		for i := range letters {
			id := fmt.Sprintf("m%03d", i)
			k.publish(&driver.Message{ID: id, Body: []byte(id), Key: fmt.Sprint("k", i%7)})
		}
		k.bury(letters, slow)
	})
	seed := uint64(time.Now().UnixNano())
	random := mathrand.New(mathrand.NewPCG(seed, 0))
	kills := 0
	for !replayUntilKilled(t, url, to, 1+random.IntN(150)) {
		kills++
	}
	t.Logf("seed %d: killed %d times", seed, kills)
	if kills == 0 {
		t.Error("it was never killed")
	}
	queue := topic
	if to != "" {
		queue = to
	}
	opened(func(k *kit) {
		if c := k.counts(topic); c.Dead != 0 || queue != topic && c.Ready != 0 {
			k.Errorf("%+v", c)
		}
		if c := k.counts(queue); c.Ready != letters {
			k.Fatalf("%d in the queue, want %d", c.Ready, letters)
		}
		got := k.bodies(queue, letters)
		if !slices.Equal(sorted(got), numbered("m", letters)) {
			k.Errorf("not every letter is there once: %d", len(slices.Compact(sorted(got))))
		}
		last := map[int]string{}
		for _, body := range got { // the order of each key was kept over all runs
			var n int
			_, _ = fmt.Sscanf(body, "m%d", &n)
			if body < last[n%7] {
				k.Errorf("%s came after %s", body, last[n%7])
			}
			last[n%7] = body
		}
		k.audit()
	})
}
