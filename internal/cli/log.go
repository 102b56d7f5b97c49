package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"
)

// logSink is where log lines go: standard error, or the live view while there is one, which keeps them above itself.
type logSink struct {
	mu sync.Mutex
	w  io.Writer
}

func (s *logSink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.w.Write(b)
}

// redirect sends lines elsewhere and gives what takes that back.
func (s *logSink) redirect(w io.Writer) (back func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.w
	s.w = w
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.w = old
	}
}

func (a *app) setUpLog() error {
	if a.log != nil {
		return nil
	}
	text := a.logLevel
	if text == "" {
		text = a.Env("SLUICE_LOG_LEVEL")
	}
	if text == "" {
		text = "warn"
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(text)); err != nil {
		return usage("log level %q is not one of debug, info, warn, error", text)
	}
	a.colour = noColour
	if !a.noColour && a.Env("NO_COLOR") == "" && isTerminal(a.Stderr) {
		a.colour = ansiColour
	}
	a.log = slog.New(&lineHandler{w: a.logs, level: level, paint: a.paint})
	return nil
}

// lineHandler writes a record as one short line for people: time, level, message, key=value.
type lineHandler struct {
	w      io.Writer
	level  slog.Level
	paint  func(colour, string) string
	prefix string // of groups
	attrs  string // rendered already
}

func (h *lineHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	level, c := "info", cyan
	switch {
	case r.Level >= slog.LevelError:
		level, c = "error", red
	case r.Level >= slog.LevelWarn:
		level, c = "warning", yellow
	case r.Level < slog.LevelInfo:
		level, c = "debug", grey
	}
	fmt.Fprintf(&b, "%s %s %s%s", h.paint(grey, r.Time.Format(time.TimeOnly)), h.paint(c, level+":"), r.Message, h.attrs)
	r.Attrs(func(at slog.Attr) bool {
		b.WriteString(h.render(at))
		return true
	})
	b.WriteByte('\n')
	_, err := h.w.Write(b.Bytes())
	return err
}

func (h *lineHandler) render(at slog.Attr) string {
	at.Value = at.Value.Resolve()
	if at.Value.Kind() == slog.KindGroup {
		var b strings.Builder
		inner := *h
		inner.prefix += at.Key + "."
		for _, g := range at.Value.Group() {
			b.WriteString(inner.render(g))
		}
		return b.String()
	}
	if at.Equal(slog.Attr{}) {
		return ""
	}
	text := at.Value.String()
	if text == "" || strings.ContainsAny(text, " \t\n\"=") {
		text = strconv.Quote(text)
	}
	return " " + h.paint(grey, h.prefix+at.Key+"=") + text
}

func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	out := *h
	for _, at := range attrs {
		out.attrs += h.render(at)
	}
	return &out
}

func (h *lineHandler) WithGroup(name string) slog.Handler {
	out := *h
	out.prefix += name + "."
	return &out
}
