package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// yesFlag adds --yes.
func yesFlag(f *pflag.FlagSet, yes *bool) {
	f.BoolVar(yes, "yes", false, "do not ask")
	onlyOnCommandLine(f, "yes")
}

// confirm asks on the terminal before something is done that cannot be undone. The answer is what typed says, or y if
// that is empty. Where nobody can be asked, --yes is demanded.
func (p process) confirm(ctx context.Context, yes bool, what, typed string) error {
	if yes {
		return nil
	}
	if !isTerminal(p.in) || !isTerminal(p.err) {
		return unasked(what)
	}
	want := typed
	if typed == "" {
		want = "y"
	}
	_, _ = fmt.Fprintf(p.err, "%s\ntype %s to go on: ", printable(what), printable(want))
	answer, err := bufio.NewReader(patient{ctx, p.in}).ReadString('\n')
	switch answer = strings.TrimSpace(answer); {
	case answer == want, typed == "" && strings.EqualFold(answer, "yes"):
		return nil
	case errors.Is(err, io.EOF) && answer == "": // not a terminal after all, but /dev/null
		return unasked(what)
	case ctx.Err() != nil:
		return failure("interrupted; nothing was changed", "answer the question, or add --yes")
	}
	return failure("not confirmed; nothing was changed", "type exactly "+want+", or add --yes")
}

func unasked(what string) error {
	return usage("nobody can be asked: "+what, "add --yes if you mean it")
}

// patient reads until its context ends. A read that waits then cannot be called back; it ends with the input.
type patient struct {
	ctx context.Context
	r   io.Reader
}

func (p patient) Read(b []byte) (int, error) {
	if p.ctx.Err() != nil {
		return 0, context.Cause(p.ctx)
	}
	type result struct {
		data []byte
		err  error
	}
	done := make(chan result, 1)
	size := len(b)
	go func() {
		own := make([]byte, size) // b belongs to the caller again once its context has ended
		n, err := p.r.Read(own)
		done <- result{own[:n], err}
	}()
	select {
	case r := <-done:
		return copy(b, r.data), r.err
	case <-p.ctx.Done():
		return 0, context.Cause(p.ctx)
	}
}
