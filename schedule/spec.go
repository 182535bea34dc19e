package schedule

import (
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"

	"github.com/ferrymq/ferry"
	"github.com/ferrymq/ferry/driver"
)

// MinEvery is the shortest time between the ticks of an @every.
const MinEvery = time.Second

// timing returns the first tick after a time; zero when there is none.
type timing func(after time.Time) time.Time

// Next returns the n ticks of a spec after a time, fewer if there are no more.
func Next(spec, zone string, after time.Time, n int) ([]time.Time, error) {
	if n < 0 {
		return nil, wrong(fmt.Sprintf("%d ticks are asked for", n), "ask for none or more", nil)
	}
	next, err := parse(spec, zone)
	if err != nil {
		return nil, err
	}
	var ticks []time.Time
	for t := next(after); len(ticks) < n && !t.IsZero(); t = next(t) {
		ticks = append(ticks, t)
	}
	return ticks, nil
}

// lastYear is beyond what a broker can delay a message to.
const lastYear = 2262

// parse returns the timing of a spec in a zone.
func parse(spec, zone string) (timing, error) {
	next, err := parseAny(spec, zone)
	if err != nil {
		return nil, err
	}
	return func(after time.Time) time.Time {
		if t := next(after); t.Year() < lastYear {
			return t
		}
		return time.Time{}
	}, nil
}

func parseAny(spec, zone string) (timing, error) {
	loc, err := location(zone)
	if err != nil {
		return nil, err
	}
	spec = strings.TrimSpace(spec)
	word, rest, _ := strings.Cut(spec, " ")
	switch {
	case spec == "":
		return nil, wrong("the spec is empty", specHint, nil)
	case len(spec) > cron.MaxSpecLength:
		return nil, wrong(fmt.Sprintf("the spec has %d bytes", len(spec)),
			fmt.Sprintf("use at most %d", cron.MaxSpecLength), nil)
	case word == "@every":
		return parseEvery(rest)
	case word == "@at":
		return parseAt(rest)
	case strings.HasPrefix(word, "@"):
		return parseDescriptor(spec, loc)
	}
	return parseFields(spec, loc)
}

const specHint = `write five cron fields ("0 3 * * *"), six with seconds first, @daily, ` +
	`"@every 10m" or "@at 2026-01-31T08:00:00Z"`

func wrong(text, hint string, cause error) error {
	return driver.NewError(ferry.ErrInvalid, text, hint, cause)
}

// location returns a zone by its name. The zone of the machine is none: machines differ.
func location(zone string) (*time.Location, error) {
	if zone == "" {
		return time.UTC, nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || loc == time.Local {
		return nil, wrong(fmt.Sprintf("time zone %.80q is not known", zone),
			// its text is the same
			"use a name like Europe/Berlin or Asia/Shanghai; where the machine has no zones, import time/tzdata", nil)
	}
	return loc, nil
}

// parseEvery reads a duration. Ticks are counted from 1970, so that all instances mean the same times, whenever they
// began.
func parseEvery(text string) (timing, error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	switch {
	case err != nil:
		return nil, wrong(fmt.Sprintf("@every %.40q is no duration", text),
			"write it as @every 90s, @every 10m or @every 1h30m", nil)
	case d < MinEvery || d%time.Millisecond != 0:
		return nil, wrong(fmt.Sprintf("@every %v is not possible", d),
			fmt.Sprintf("use %v or more, in whole milliseconds", MinEvery), nil)
	}
	return func(after time.Time) time.Time {
		step := d.Milliseconds()
		n := after.UnixMilli() / step
		if after.UnixMilli()%step < 0 { // division rounds to zero
			n--
		}
		return time.UnixMilli((n + 1) * step).UTC()
	}, nil
}

func parseAt(text string) (timing, error) {
	at, err := time.Parse(time.RFC3339, strings.TrimSpace(text))
	if err != nil {
		return nil, wrong(fmt.Sprintf("@at %.40q is no time", text),
			"write it as @at 2026-01-31T08:00:00Z, or with an offset: @at 2026-01-31T08:00:00+08:00", nil)
	}
	at = at.Truncate(time.Millisecond).UTC()
	return func(after time.Time) time.Time {
		if at.After(after) {
			return at
		}
		return time.Time{}
	}, nil
}

// parser reads fields and descriptors. Day of month and day of week are as in crontab: where both are given, either is
// enough. Ten years are enough for the 29th of February.
var parser = cron.MustNewParser(
	cron.SecondOptional | cron.Minute | cron.Hour | cron.Dom | cron.Month |
		cron.Dow | cron.Descriptor | cron.Extended | cron.DowOrDom).
	WithMaxSearchYears(10)

// descriptors are those that stand for fields; the parser knows some more, which never tick.
var descriptors = []string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

func parseDescriptor(spec string, loc *time.Location) (timing, error) {
	for _, d := range descriptors {
		if d == spec {
			return compile(spec, loc)
		}
	}
	return nil, wrong(fmt.Sprintf("%.40q is not known", spec),
		"use "+strings.Join(descriptors, ", ")+", @every or @at", nil)
}

var columns = []string{"second", "minute", "hour", "day of month", "month", "day of week"}

func parseFields(spec string, loc *time.Location) (timing, error) {
	fields, names := strings.Fields(spec), columns
	switch {
	case strings.Contains(fields[0], "TZ="):
		return nil, wrong("the spec contains a time zone", "give the zone beside the spec", nil)
	case len(fields) == 5:
		names = columns[1:]
	case len(fields) != 6:
		return nil, wrong(fmt.Sprintf("the spec has %d fields", len(fields)), specHint, nil)
	}
	for i, field := range fields {
		if err := checkField(names[i], field); err != nil {
			return nil, err
		}
	}
	return compile(strings.Join(fields, " "), loc)
}

// checkField says what is wrong with one field: the parser does not say of which column it speaks.
func checkField(column, field string) error {
	if strings.Contains(","+field+",", ",,") { // which the parser passes over
		return wrong(fmt.Sprintf("column %q of the spec has an empty place in its list: %.80q", column, field),
			fieldHints[column], nil)
	}
	alone := make([]string, len(columns))
	for i, c := range columns {
		if alone[i] = "*"; c == column {
			alone[i] = field
		}
	}
	if _, err := parser.Parse(strings.Join(alone, " ")); err != nil || strings.Trim(field, ",") == "" {
		return wrong(fmt.Sprintf("column %q of the spec is wrong: %.80q", column, field), fieldHints[column], nil)
	}
	return nil
}

var fieldHints = map[string]string{
	"second":       "use 0 to 59, *, lists 0,30 or steps */10",
	"minute":       "use 0 to 59, *, lists 0,30 or steps */10",
	"hour":         "use 0 to 23, *, ranges 8-17, lists 8,20 or steps */2",
	"day of month": "use 1 to 31, *, L for the last day, or 15W for the weekday nearest to the 15th",
	"month":        "use 1 to 12, JAN to DEC, or *",
	"day of week":  "use 0 to 7 (0 and 7 are Sunday), MON-FRI, FRI#3 for the third Friday, or *",
}

// compile returns the timing of fields that are right.
func compile(spec string, loc *time.Location) (timing, error) {
	parsed, err := parser.Parse(spec)
	if err != nil {
		return nil, wrong(fmt.Sprintf("the spec %.80q is wrong", spec), specHint, err)
	}
	fields := parsed.(*cron.SpecSchedule)
	fields.Location = time.UTC // of the wall clock, see wall
	w := wall{fields: fields, zone: loc, hourly: fields.Hour&allHours == allHours}
	return w.next, nil
}
