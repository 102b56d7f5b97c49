// Command bench measures what sluice adds to a task on this machine: many tiny tasks through sluice, with and without
// the sandbox, beside the same commands run by xargs and by make; and a compiled pipeline beside kfp.local.
//
//	go run ./test/bench -sluice bin/sluice [-tasks 500] [-rounds 3] [-check]
//
// The candidates take turns, several rounds, and the fastest round of each counts: what is left is what the candidate
// costs, not what else the machine did. With -check it exits with 1 when an overhead is above the project's limits.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"
)

// The most that sluice may add to a task, in wall-clock time.
const (
	plainLimit   = 10 * time.Millisecond
	sandboxLimit = 25 * time.Millisecond
)

type options struct {
	sluice, out, work, requirements string
	tasks, rounds, pythonTasks      int
	check                           bool
}

func main() {
	var o options
	flag.StringVar(&o.sluice, "sluice", "bin/sluice", "the program to measure")
	flag.StringVar(&o.out, "out", "build/bench.json", "where to write the figures")
	flag.StringVar(&o.work, "work", "build/conformance", "folder for what is kept between runs (the Python environment)")
	flag.StringVar(&o.requirements, "requirements", "test/requirements.txt", "Python packages for kfp.local")
	flag.IntVar(&o.tasks, "tasks", 500, "how many tasks a round has")
	flag.IntVar(&o.rounds, "rounds", 3, "how many rounds")
	flag.IntVar(&o.pythonTasks, "python-tasks", 20, "how many Python components a round has; 0: leave kfp.local out")
	flag.BoolVar(&o.check, "check", false, "fail when an overhead is above the limits")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := run(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(2)
	}
	if !ok && o.check {
		stop()
		os.Exit(1)
	}
}

// Figure is what one candidate needed.
type Figure struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	Tasks int    `json:"tasks"`
	// Seconds is the fastest round; All are all of them.
	Seconds float64   `json:"seconds"`
	All     []float64 `json:"all"`
	// PerTask and Over are milliseconds: of a task, and of a task more than the group's first candidate needs.
	PerTask float64 `json:"perTaskMs"`
	Over    float64 `json:"overMs"`
	Ratio   float64 `json:"ratio"`
	limit   time.Duration
}

func run(ctx context.Context, o options) (bool, error) {
	for _, path := range []*string{&o.sluice, &o.work, &o.requirements} {
		absolute, err := filepath.Abs(*path)
		if err != nil {
			return false, err
		}
		*path = absolute
	}
	folder, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(folder)
	tiny, err := shellCandidates(o, folder)
	if err != nil {
		return false, err
	}
	figures, err := measure(ctx, "shell", o.tasks, o.rounds, tiny)
	if err != nil {
		return false, err
	}
	ok := show(fmt.Sprintf("%d tasks of `sh -c 'echo N'`, two at a time, on %d cores", o.tasks, runtime.NumCPU()), figures)
	if o.pythonTasks > 0 {
		python, err := pythonCandidates(ctx, o, folder)
		if err != nil {
			fmt.Println("kfp.local: skipped:", err)
		} else {
			more, err := measure(ctx, "kfp", o.pythonTasks, o.rounds, python)
			if err != nil {
				return false, err
			}
			show(fmt.Sprintf("%d Python components of a compiled pipeline", o.pythonTasks), more)
			figures = append(figures, more...)
		}
	}
	text, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
		return false, err
	}
	return ok, os.WriteFile(o.out, append(text, '\n'), 0o644)
}

// candidate is one way to do the work; run does it once.
type candidate struct {
	name  string
	limit time.Duration
	run   func(ctx context.Context) error
}

// measure lets the candidates take turns.
func measure(ctx context.Context, group string, tasks, rounds int, candidates []candidate) ([]Figure, error) {
	figures := make([]Figure, len(candidates))
	for range rounds {
		for i, c := range candidates {
			started := time.Now()
			if err := c.run(ctx); err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			figures[i].All = append(figures[i].All, time.Since(started).Seconds())
		}
	}
	for i, c := range candidates {
		f := &figures[i]
		f.Group, f.Name, f.Tasks, f.limit = group, c.name, tasks, c.limit
		f.Seconds = f.All[0]
		for _, s := range f.All {
			f.Seconds = min(f.Seconds, s)
		}
		f.PerTask = 1000 * f.Seconds / float64(tasks)
		f.Over = f.PerTask - figures[0].PerTask
		f.Ratio = f.Seconds / figures[0].Seconds
	}
	return figures, nil
}

// show prints a group and says whether all are within their limits.
func show(title string, figures []Figure) bool {
	ok := true
	fmt.Printf("\n%s\n\n%-22s %9s %12s %14s %8s\n", title, "", "total", "a task", "over "+figures[0].Name, "ratio")
	for _, f := range figures {
		note := ""
		if f.limit > 0 {
			note = fmt.Sprintf("  at most %d ms over", f.limit.Milliseconds())
			if f.Over > float64(f.limit.Milliseconds()) {
				note, ok = note+": TOO MUCH", false
			}
		}
		fmt.Printf("%-22s %7.2f s %9.2f ms %11.2f ms %7.2fx%s\n", f.Name, f.Seconds, f.PerTask, f.Over, f.Ratio, note)
	}
	return ok
}
