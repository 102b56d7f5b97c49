// Package cron says when a CronWorkflow starts a workflow, and what that looks like. It is pure: the time comes in.
package cron

import (
	"fmt"
	"strings"
	"time"
	_ "time/tzdata" // images have no time zones

	"github.com/robfig/cron/v3"
)

// Schedule is when workflows are started: at the times of any of its lines.
type Schedule struct {
	lines []cron.Schedule
	text  string
}

// Parse reads schedules as CronWorkflows have them: five fields or @daily and the like, in a time zone of the IANA
// database, UTC where it is empty.
func Parse(lines []string, zone string) (Schedule, error) {
	if len(lines) == 0 {
		return Schedule{}, fmt.Errorf("cron workflow must have at least one schedule")
	}
	var s Schedule
	var texts []string
	for _, line := range lines {
		full := line
		if zone != "" {
			full = "CRON_TZ=" + zone + " " + line
		}
		texts = append(texts, full)
		if zone == "" {
			full = "CRON_TZ=UTC " + line
		}
		if strings.HasPrefix(line, "CRON_TZ=") || strings.HasPrefix(line, "TZ=") {
			full = line
		}
		parsed, err := cron.ParseStandard(full)
		if err != nil {
			return Schedule{}, fmt.Errorf("cron schedule %q is malformed: %w", line, err)
		}
		s.lines = append(s.lines, parsed)
	}
	s.text = strings.Join(texts, ",")
	return s, nil
}

// String is the text that Argo keeps of a schedule in an annotation, to see that it has changed.
func (s Schedule) String() string { return s.text }

// Next is the first time after another; zero where there is none within five years.
func (s Schedule) Next(after time.Time) time.Time {
	var first time.Time
	for _, line := range s.lines {
		if t := line.Next(after); !t.IsZero() && (first.IsZero() || t.Before(first)) {
			first = t
		}
	}
	return first.UTC()
}

// Latest is the last time after another that is not after now; ok is false where there is none. What was missed before it
// is not made up for.
func (s Schedule) Latest(after, now time.Time) (last time.Time, ok bool) {
	// Looking from far back steps through all the times in between: nobody asks for what is long gone.
	if day := now.Add(-366 * 24 * time.Hour); after.Before(day) {
		after = day
	}
	for _, line := range s.lines {
		for _, back := range []time.Duration{time.Minute, time.Hour, 25 * time.Hour, 32 * 24 * time.Hour, 367 * 24 * time.Hour} {
			from := now.Add(-back)
			if from.Before(after) {
				from = after
			}
			found := false
			for t := line.Next(from); !t.IsZero() && !t.After(now); t = line.Next(t) {
				found = true
				if t.After(last) {
					last = t
				}
			}
			if found || from.Equal(after) {
				break
			}
		}
	}
	return last.UTC(), !last.IsZero()
}

// Missed says whether a time that passed while no controller looked is still to be made up for: the last one since a
// workflow was started, if not more than the deadline has gone by.
func (s Schedule) Missed(last, now time.Time, deadline *int64) (time.Time, bool) {
	if deadline == nil || last.IsZero() {
		return time.Time{}, false
	}
	t, ok := s.Latest(last, now)
	if !ok || !now.Before(t.Add(time.Duration(*deadline)*time.Second)) {
		return time.Time{}, false
	}
	return t, true
}
