package cron

import (
	"testing"
	"time"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestNext(t *testing.T) {
	tests := map[string]struct {
		lines       []string
		zone        string
		after, want string
	}{
		"every minute":                      {[]string{"* * * * *"}, "", "2026-03-01T10:00:30Z", "2026-03-01T10:01:00Z"},
		"exactly on time is the next":       {[]string{"* * * * *"}, "", "2026-03-01T10:01:00Z", "2026-03-01T10:02:00Z"},
		"a name":                            {[]string{"@daily"}, "", "2026-03-01T10:00:00Z", "2026-03-02T00:00:00Z"},
		"the first of several":              {[]string{"0 12 * * *", "0 11 * * *"}, "", "2026-03-01T10:00:00Z", "2026-03-01T11:00:00Z"},
		"in a zone":                         {[]string{"0 9 * * *"}, "America/New_York", "2026-01-05T10:00:00Z", "2026-01-05T14:00:00Z"},
		"in a zone, in summer":              {[]string{"0 9 * * *"}, "America/New_York", "2026-07-05T10:00:00Z", "2026-07-05T13:00:00Z"},
		"an hour that the clock leaves out": {[]string{"30 2 8 3 *"}, "America/New_York", "2026-03-08T00:00:00Z", "2027-03-08T07:30:00Z"},
		"a leap day":                        {[]string{"0 0 29 2 *"}, "", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Parse(test.lines, test.zone)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := s.Next(at(t, test.after)), at(t, test.want); !got.Equal(want) {
				t.Errorf("next after %s is %s, want %s", test.after, got, want)
			}
		})
	}
}

func TestLatest(t *testing.T) {
	tests := map[string]struct {
		line, after, now, want string
	}{
		"one":           {"0 * * * *", "2026-03-01T10:30:00Z", "2026-03-01T11:10:00Z", "2026-03-01T11:00:00Z"},
		"of many":       {"* * * * *", "2026-01-01T00:00:00Z", "2026-03-01T11:10:20Z", "2026-03-01T11:10:00Z"},
		"none yet":      {"0 * * * *", "2026-03-01T10:30:00Z", "2026-03-01T10:59:59Z", ""},
		"now counts":    {"0 * * * *", "2026-03-01T10:30:00Z", "2026-03-01T11:00:00Z", "2026-03-01T11:00:00Z"},
		"after is gone": {"0 * * * *", "2026-03-01T11:00:00Z", "2026-03-01T11:59:00Z", ""},
		"months ago":    {"0 0 1 1 *", "2025-12-01T00:00:00Z", "2026-11-01T00:00:00Z", "2026-01-01T00:00:00Z"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s, err := Parse([]string{test.line}, "")
			if err != nil {
				t.Fatal(err)
			}
			got, ok := s.Latest(at(t, test.after), at(t, test.now))
			if ok != (test.want != "") || ok && !got.Equal(at(t, test.want)) {
				t.Errorf("got %s %v, want %q", got, ok, test.want)
			}
		})
	}
}

func TestMissed(t *testing.T) {
	s, err := Parse([]string{"0 * * * *"}, "")
	if err != nil {
		t.Fatal(err)
	}
	minutes := func(n int64) *int64 { n *= 60; return &n }
	last, now := at(t, "2026-03-01T08:00:00Z"), at(t, "2026-03-01T11:10:00Z")
	for name, test := range map[string]struct {
		last     time.Time
		deadline *int64
		want     bool
	}{
		"within the deadline": {last, minutes(11), true},
		"too late":            {last, minutes(10), false},
		"no deadline":         {last, nil, false},
		"never started":       {time.Time{}, minutes(60), false},
		"nothing missed":      {at(t, "2026-03-01T11:00:00Z"), minutes(60), false},
	} {
		if got, ok := s.Missed(test.last, now, test.deadline); ok != test.want || ok && !got.Equal(at(t, "2026-03-01T11:00:00Z")) {
			t.Errorf("%s: got %s %v", name, got, ok)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, test := range [][2]string{{"* * * *", ""}, {"61 * * * *", ""}, {"* * * * *", "Mars/Base"}} {
		if _, err := Parse([]string{test[0]}, test[1]); err == nil {
			t.Errorf("%q in %q is accepted", test[0], test[1])
		}
	}
	if _, err := Parse(nil, ""); err == nil {
		t.Error("no schedule is accepted")
	}
}
