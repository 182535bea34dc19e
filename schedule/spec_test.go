package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/schedule"
)

func TestNext(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, spec, zone, after string
		want                    []string
	}{
		{"five fields", "*/20 8 * * *", "", "2026-01-01T08:10:00Z",
			[]string{"2026-01-01T08:20:00Z", "2026-01-01T08:40:00Z", "2026-01-02T08:00:00Z"}},
		{"six fields", "*/30 0 0 * * *", "", "2026-01-01T00:00:00.5Z",
			[]string{"2026-01-01T00:00:30Z", "2026-01-02T00:00:00Z"}},
		{"a tick is after", "0 8 * * *", "", "2026-01-01T08:00:00Z", []string{"2026-01-02T08:00:00Z"}},
		{"daily in a zone", "@daily", "Asia/Shanghai", "2026-01-01T00:00:00Z",
			[]string{"2026-01-01T16:00:00Z", "2026-01-02T16:00:00Z"}},
		{"every counts from 1970", "@every 15m", "", "2026-01-01T08:07:11Z",
			[]string{"2026-01-01T08:15:00Z", "2026-01-01T08:30:00Z"}},
		{"every before 1970", "@every 1h", "", "1969-12-31T22:30:00Z",
			[]string{"1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z"}},
		{"at", "@at 2026-01-31T08:00:00+08:00", "", "2026-01-01T00:00:00Z", []string{"2026-01-31T00:00:00Z"}},
		{"either day is enough", "0 0 13 * FRI", "", "2026-02-01T00:00:00Z",
			[]string{"2026-02-06T00:00:00Z", "2026-02-13T00:00:00Z", "2026-02-20T00:00:00Z"}},
		{"last day of a month", "0 0 L * *", "", "2026-02-01T00:00:00Z",
			[]string{"2026-02-28T00:00:00Z", "2026-03-31T00:00:00Z"}},
		{"29th of February", "0 0 29 2 *", "", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},

		// Berlin: on 2026-03-29 02:00 becomes 03:00, on 2026-10-25 03:00 becomes 02:00.
		{"a skipped time is when the clock is put forward", "30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		{"several skipped times are one tick", "*/20 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		{"a skipped time and the one it is put to are one tick", "0 2,3 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T01:00:00Z"}},
		{"every hour skips what is not there", "0 * * * *", "Europe/Berlin", "2026-03-28T23:30:00Z",
			[]string{"2026-03-29T00:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		{"of a time that comes twice the first counts", "30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		{"also when asked between the two", "30 2 * * *", "Europe/Berlin", "2026-10-25T01:10:00Z",
			[]string{"2026-10-26T01:30:00Z"}},
		{"the end of what comes twice is no part of it", "0 2,3 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z",
			[]string{"2026-10-25T02:00:00Z"}},
		{"every hour ticks twice", "30 * * * *", "Europe/Berlin", "2026-10-25T00:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-25T02:30:00Z"}},
		// Cairo: on 2026-04-24, a Friday, 00:00 becomes 01:00.
		{"midnight is skipped", "@daily", "Africa/Cairo", "2026-04-22T12:00:00Z",
			[]string{"2026-04-22T22:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		{"a day without midnight", "30 * * * FRI", "Africa/Cairo", "2026-04-23T20:00:00Z",
			[]string{"2026-04-23T22:30:00Z", "2026-04-23T23:30:00Z"}},
		// Lord Howe: on 2026-10-04 02:00 becomes 02:30.
		{"half an hour is skipped", "15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z",
			[]string{"2026-10-03T15:30:00Z", "2026-10-04T15:15:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			after, err := time.Parse(time.RFC3339, c.after)
			if err != nil {
				t.Fatal(err)
			}
			ticks, err := schedule.Next(c.spec, c.zone, after, len(c.want))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, tick := range ticks {
				got = append(got, tick.Format(time.RFC3339))
			}
			if strings.Join(got, " ") != strings.Join(c.want, " ") {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
		})
	}
}

// In every zone of the table a daily schedule ticks once a day, on each of two years' days, and an hourly one every
// hour.
func TestNoDayIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "America/Santiago",
		"Australia/Lord_Howe", "Asia/Shanghai", "America/Havana", "Asia/Beirut"} {
		loc, err := time.LoadLocation(zone)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range []string{"0 0 * * *", "30 0 * * *", "15 1 * * *", "0 2 * * *", "59 23 * * *"} {
			ticks, err := schedule.Next(spec, zone, time.Date(2026, 1, 1, 23, 59, 30, 0, loc), 730)
			if err != nil || len(ticks) != 730 {
				t.Fatalf("%s %s: %d ticks, %v", zone, spec, len(ticks), err)
			}
			for i, tick := range ticks {
				if want := time.Date(2026, 1, 2+i, 12, 0, 0, 0,
					loc).Format(time.DateOnly); tick.In(loc).Format(time.DateOnly) != want {
					t.Fatalf("%s %s: tick %d is at %s, not on %s", zone, spec, i, tick.In(loc), want)
				}
			}
		}
		hours, err := schedule.Next("0 0 * * * *", zone, time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(hours); i++ {
			if gap := hours[i].Sub(hours[i-1]); gap != time.Hour && zone != "Australia/Lord_Howe" {
				t.Fatalf("%s: %v between %s and %s", zone, gap, hours[i-1], hours[i])
			}
		}
	}
}

// What is wrong with a spec is said with its column, and what to write instead.
func TestWrongSpecs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ spec, zone, part string }{
		{"", "", "the spec is empty"},
		{"* * *", "", "the spec has 3 fields"},
		{"* * * * * * *", "", "the spec has 7 fields"},
		{"60 * * * *", "", `column "minute"`},
		{"0 24 * * *", "", `column "hour"`},
		{"0 0 32 * *", "", `column "day of month"`},
		{"0 0 1 13 *", "", `column "month"`},
		{"0 0 * * FRY", "", `column "day of week"`},
		{"61 0 0 * * *", "", `column "second"`},
		{"0 , * * *", "", `column "hour"`},
		{"*/0 * * * *", "", `column "minute"`},
		{"1,,2 * * * *", "", `column "minute"`},
		{"0 8, * * *", "", `column "hour"`},
		{"TZ=UTC 0 0 * * *", "", "a time zone"},
		{"@fortnightly", "", `"@fortnightly" is not known`},
		{"@manual", "", `"@manual" is not known`},
		{"@every", "", "is no duration"},
		{"@every 10", "", "is no duration"},
		{"@every 10ms", "", "is not possible"},
		{"@every -1h", "", "is not possible"},
		{"@at noon", "", "is no time"},
		{"@daily", "Mars/Olympus", `time zone "Mars/Olympus" is not known`},
		{"@daily", "Local", `time zone "Local" is not known`},
		{strings.Repeat("*", 2000), "", "2000 bytes"},
	} {
		_, err := schedule.Next(c.spec, c.zone, begin, 1)
		var e *ferry.Error
		if !errors.As(err, &e) || !errors.Is(err, ferry.ErrInvalid) || e.Hint == "" ||
			!strings.Contains(err.Error(), c.part) {
			t.Errorf("%q in %q: %v, want an ErrInvalid with a hint and %q", c.spec, c.zone, err, c.part)
		}
	}
}

func TestNextOfLessThanNone(t *testing.T) {
	t.Parallel()
	if _, err := schedule.Next("@daily", "", begin, -1); !errors.Is(err, ferry.ErrInvalid) {
		t.Errorf("-1 ticks: %v", err)
	}
	if ticks, err := schedule.Next("@daily", "", begin, 0); err != nil || len(ticks) != 0 {
		t.Errorf("no ticks: %v, %v", ticks, err)
	}
}

// FuzzNext demands of any spec that its ticks, if it has any, go forward.
func FuzzNext(f *testing.F) {
	f.Add("*/5 2 * * *", "Europe/Berlin", int64(1774746000))
	f.Add("0 0 29 2 *", "", int64(0))
	f.Add("@every 1h", "Asia/Shanghai", int64(-5))
	f.Fuzz(func(t *testing.T, spec, zone string, unix int64) {
		after := time.Unix(unix%(1<<33), 0)
		ticks, err := schedule.Next(spec, zone, after, 5)
		if err != nil {
			return
		}
		for _, tick := range ticks {
			if !tick.After(after) {
				t.Fatalf("%q in %q: %s is not after %s", spec, zone, tick, after)
			}
			after = tick
		}
	})
}
