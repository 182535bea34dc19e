package main

import (
	"fmt"
	"strings"
	"time"
)

// progress draws a bar on a terminal while many messages are published. Nil draws nothing.
type progress struct {
	terminal *terminal
	total    int64 // bytes; 0: unknown
	begin    time.Time
	drawn    time.Time
}

// progressEvery is how often the bar moves.
const progressEvery = 100 * time.Millisecond

func newProgress(p process, total int64) *progress {
	return &progress{terminal: newTerminalOn(p, p.err), total: total, begin: time.Now()}
}

// show draws how much was read and published.
func (p *progress) show(read int64, messages int) {
	if p == nil || !p.terminal.live || time.Since(p.drawn) < progressEvery {
		return
	}
	p.drawn = time.Now()
	p.terminal.draw(bar(read, p.total) + fmt.Sprintf("%s messages, %s/s", grouped(messages),
		grouped(int(float64(messages)/time.Since(p.begin).Seconds()))))
}

const barWidth = 30

// bar returns how much of the total is done, or nothing if the total is unknown.
func bar(done, total int64) string {
	if total <= 0 {
		return ""
	}
	done = min(done, total)
	full := int(done * barWidth / total)
	return fmt.Sprintf("[%s%s] %3d %%  ", strings.Repeat("#", full), strings.Repeat(".", barWidth-full), done*100/total)
}

// clear removes the bar.
func (p *progress) clear() {
	if p != nil {
		p.terminal.erase()
	}
}
