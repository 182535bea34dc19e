package drivertest

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
)

// recorder is a testing.TB that remembers failures, so that a failing case need not fail the test that runs it.
type recorder struct {
	testing.TB      // the test around it: for Name, Log, TempDir and Context
	silent     bool // nothing is logged

	mu         sync.Mutex
	complaints []string
	excused    []string // complaints about time that a stall of the machine accounts for
	skipped    string   // why
	cleanups   []func()
}

// record runs f as the testing package would, cleanups included, and returns what it complained of.
func record(tb testing.TB, f func(testing.TB)) []string {
	r := &recorder{TB: tb, silent: true}
	r.run(f)
	return r.complaints
}

func (r *recorder) run(f func(testing.TB)) {
	r.apart(func() { f(r) })
	for len(r.cleanups) > 0 {
		last := r.cleanups[len(r.cleanups)-1]
		r.cleanups = r.cleanups[:len(r.cleanups)-1]
		r.apart(last)
	}
}

// apart runs f in a goroutine, because FailNow ends the goroutine that calls it.
func (r *recorder) apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				r.complain(fmt.Sprintf("panic: %v", p))
			}
		}()
		f()
	}()
	<-done
}

func (r *recorder) complain(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.complaints = append(r.complaints, text)
}

// excuse notes a complaint that says nothing about the driver.
func (r *recorder) excuse(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.excused = append(r.excused, text)
}

// end ends the case without another complaint.
func (r *recorder) end() { runtime.Goexit() }

func (r *recorder) Failed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.complaints) > 0
}

func (r *recorder) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cleanups = append(r.cleanups, f)
}

func (r *recorder) Helper()                      {}
func (r *recorder) Fail()                        { r.complain("failed") }
func (r *recorder) Error(args ...any)            { r.complain(fmt.Sprint(args...)) }
func (r *recorder) Errorf(text string, a ...any) { r.complain(fmt.Sprintf(text, a...)) }
func (r *recorder) Fatal(args ...any)            { r.complain(fmt.Sprint(args...)); runtime.Goexit() }
func (r *recorder) Fatalf(text string, a ...any) {
	r.complain(fmt.Sprintf(text, a...))
	runtime.Goexit()
}
func (r *recorder) FailNow() { r.complain("failed"); runtime.Goexit() }

// Log passes it on.
func (r *recorder) Log(args ...any) {
	if !r.silent {
		r.TB.Log(args...)
	}
}

// Logf passes it on.
func (r *recorder) Logf(text string, a ...any) { r.Log(fmt.Sprintf(text, a...)) }

// skip ends the case, with a reason.
func (r *recorder) skip(reason string) {
	r.mu.Lock()
	r.skipped = reason
	r.mu.Unlock()
	runtime.Goexit()
}
func (r *recorder) Skip(args ...any)            { r.skip(fmt.Sprint(args...)) }
func (r *recorder) Skipf(text string, a ...any) { r.skip(fmt.Sprintf(text, a...)) }
func (r *recorder) SkipNow()                    { r.skip("skipped") }
