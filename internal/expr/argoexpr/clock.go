package argoexpr

import (
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/Masterminds/sprig/v3"

	"github.com/sluice-ml/sluice/internal/expr"
)

// ownSprig are the functions of sprig's that would read the clock, the time zone of the machine or a source of
// randomness, here with the time and the seed of the evaluation. Each entry gives the function for an evaluation.
var ownSprig = map[string]func(ev *evaluation) any{
	"now": func(ev *evaluation) any { return func() time.Time { return ev.env.Now } },
	"ago": func(ev *evaluation) any { return ev.ago },
	"date": func(ev *evaluation) any {
		return func(layout string, t any) string { return ev.date(layout, t, "UTC") }
	},
	"dateInZone":   func(ev *evaluation) any { return ev.date },
	"date_in_zone": func(ev *evaluation) any { return ev.date },
	"htmlDate":     func(ev *evaluation) any { return func(t any) string { return ev.date(time.DateOnly, t, "UTC") } },
	"htmlDateInZone": func(ev *evaluation) any {
		return func(t any, zone string) string { return ev.date(time.DateOnly, t, zone) }
	},
	"toDate": func(*evaluation) any {
		return func(layout, text string) time.Time { t, _ := time.Parse(layout, text); return t }
	},
	"mustToDate":    func(*evaluation) any { return time.Parse },
	"durationRound": func(ev *evaluation) any { return ev.durationRound },

	"randAlpha": func(ev *evaluation) any { return func(n int) (string, error) { return ev.randomText(n, letters) } },
	"randAlphaNum": func(ev *evaluation) any {
		return func(n int) (string, error) { return ev.randomText(n, letters+digits) }
	},
	"randNumeric": func(ev *evaluation) any { return func(n int) (string, error) { return ev.randomText(n, digits) } },
	"randAscii":   func(ev *evaluation) any { return func(n int) (string, error) { return ev.randomText(n, printable()) } },
	"randBytes":   func(ev *evaluation) any { return ev.randomBytes },
	"randInt":     func(ev *evaluation) any { return ev.randomInt },
	"uuidv4":      func(ev *evaluation) any { return ev.randomUUID },
	"shuffle":     func(ev *evaluation) any { return ev.shuffle },
}

const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

func printable() string {
	var b []byte
	for c := byte(' '); c <= '~'; c++ {
		b = append(b, c)
	}
	return string(b)
}

// moment is the time that a date function is given: a time, seconds since 1970, or a text as Argo writes times. As in
// sprig everything else is now.
func (ev *evaluation) moment(v any) time.Time {
	switch t := v.(type) {
	case int:
		return time.Unix(int64(t), 0)
	case int32:
		return time.Unix(int64(t), 0)
	case int64:
		return time.Unix(t, 0)
	}
	if t, ok := asTime(v); ok {
		return t
	}
	return ev.env.Now
}

func (ev *evaluation) date(layout string, v any, zone string) string {
	location := time.UTC
	// The machine's own time zone is nothing that a workflow should depend on.
	if zone != "Local" {
		if l, err := time.LoadLocation(zone); err == nil {
			location = l
		}
	}
	return ev.moment(v).In(location).Format(layout)
}

func (ev *evaluation) ago(v any) string {
	return ev.env.Now.Sub(ev.moment(v)).Round(time.Second).String()
}

func (ev *evaluation) durationRound(v any) (string, error) {
	round, ok := sprig.GenericFuncMap()["durationRound"].(func(any) string)
	if !ok {
		return "", fmt.Errorf("sprig's durationRound is not what it was")
	}
	if t, ok := v.(time.Time); ok {
		return round(int64(ev.env.Now.Sub(t))), nil
	}
	if n, ok := v.(int); ok {
		return round(int64(n)), nil
	}
	return round(v), nil
}

// source is the evaluation's randomness. It follows from the seed of the event, the expression and the node, so that
// the same call gives the same values, but not two nodes that start with the same event.
func (ev *evaluation) source() *rand.Rand {
	if ev.random == nil {
		h := fnv.New64a()
		fmt.Fprintf(h, "%q", ev.expression.source)
		for _, path := range [][]string{{"node", "name"}, {"item"}, {"retries"}} {
			if ev.env.Scope == nil {
				break
			}
			if v, presence := ev.env.Scope.Lookup(path); presence == expr.Present {
				fmt.Fprintf(h, " %q", fmt.Sprint(v))
			}
		}
		ev.random = rand.New(rand.NewPCG(ev.env.Seed, h.Sum64()))
	}
	return ev.random
}

func (ev *evaluation) randomText(n int, alphabet string) (string, error) {
	if n < 0 {
		return "", fmt.Errorf("cannot give %d characters", n)
	}
	b := make([]byte, n)
	r := ev.source()
	for i := range b {
		b[i] = alphabet[r.IntN(len(alphabet))]
	}
	return string(b), nil
}

func (ev *evaluation) randomBytes(n int) (string, error) {
	if n < 0 {
		return "", fmt.Errorf("cannot give %d bytes", n)
	}
	b := make([]byte, n)
	r := ev.source()
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b), nil
}

func (ev *evaluation) randomInt(from, to int) (int, error) {
	if to <= from || to-from <= 0 {
		return 0, fmt.Errorf("there is no number from %d up to, but not including, %d", from, to)
	}
	return from + ev.source().IntN(to-from), nil
}

func (ev *evaluation) randomUUID() string {
	r := ev.source()
	hi, lo := r.Uint64(), r.Uint64()
	// Version 4, variant 1.
	hi = hi&^0xf000 | 0x4000
	lo = lo&^(0b11<<62) | 0b10<<62
	return fmt.Sprintf("%08x-%04x-%04x-%04x-%012x", hi>>32, hi>>16&0xffff, hi&0xffff, lo>>48, lo&0xffffffffffff)
}

func (ev *evaluation) shuffle(s string) string {
	runes := []rune(s)
	ev.source().Shuffle(len(runes), func(i, j int) { runes[i], runes[j] = runes[j], runes[i] })
	return string(runes)
}
