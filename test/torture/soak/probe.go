package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	"github.com/ferrymq/ferry/driver"
)

// Probe reads one figure.
type Probe struct {
	Series
	Read func(ctx context.Context) (float64, error)
}

const mib = 1 << 20

// Probes of this process, and of one topic of a broker.
func Probes(d driver.Driver, topic string) []Probe {
	stats := func(pick func(driver.TopicStats) int64) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			s, err := d.Stats(ctx, topic)
			if errors.Is(err, driver.ErrNotFound) {
				return 0, nil
			}
			return float64(pick(s)), err
		}
	}
	usage := func(pick func(driver.Usage) float64) func(context.Context) (float64, error) {
		return func(ctx context.Context) (float64, error) {
			u, err := d.Usage(ctx)
			return pick(u), err
		}
	}
	return []Probe{
		{Series{Name: "memory of the backend", Unit: "MiB", PerHour: 4, Noise: 8},
			usage(func(u driver.Usage) float64 { return float64(u.Memory) / mib })},
		{Series{Name: "disk of the backend", Unit: "MiB", PerHour: 16, Noise: 64},
			usage(func(u driver.Usage) float64 { return float64(u.Disk) / mib })},
		{Series{Name: "connections of the backend", PerHour: 1, Noise: 20},
			usage(func(u driver.Usage) float64 { return float64(u.Connections) })},
		{Series{Name: "resident memory", Unit: "MiB", PerHour: 1, Noise: 8}, resident},
		{Series{Name: "live heap", Unit: "MiB", PerHour: 1, Noise: 4}, liveHeap},
		{Series{Name: "goroutines", PerHour: 1, Noise: 20}, func(context.Context) (float64,
			error) {
			return float64(runtime.NumGoroutine()), nil
		}},
		{Series{Name: "open files", PerHour: 1, Noise: 5}, openFiles},
		{Series{Name: "messages in the broker", PerHour: 10, Noise: 2000},
			stats(func(s driver.TopicStats) int64 { return s.Messages })},
		{Series{Name: "dead letters", PerHour: 1000, Noise: 1000}, stats(func(s driver.TopicStats) int64 {
			var n int64
			for _, g := range s.Groups {
				n += g.Dead
			}
			return n
		})},
	}
}

func resident(context.Context) (float64, error) {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, fmt.Errorf("resident memory can be read on Linux only: %w", err)
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, fmt.Errorf("statm is %q", text)
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return float64(pages) * float64(os.Getpagesize()) / mib, err
}

func liveHeap(context.Context) (float64, error) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return float64(sample[0].Value.Uint64()) / mib, nil
}

func openFiles(context.Context) (float64, error) {
	files, err := os.ReadDir("/proc/self/fd")
	return float64(len(files)), err
}

// Sample reads all probes every so often until ctx ends.
func Sample(ctx context.Context, probes []Probe, every time.Duration) error {
	start := time.Now()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		for i := range probes {
			p := &probes[i]
			v, err := p.Read(ctx)
			if over(ctx) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
			p.Points = append(p.Points, Point{time.Since(start), v})
		}
	}
}

// over says that the time is over. A connection may notice it a moment before the context does.
func over(ctx context.Context) bool {
	end, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && !time.Now().Before(end)
}
